"""XMP: descriptions and alternative texts in sidecar files (ISO 16684-1; IPTC Core 1.3)."""

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from sightline.errors import PictureError

_X = "adobe:ns:meta/"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DC = "http://purl.org/dc/elements/1.1/"
_IPTC = "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_PREFIXES = {"x": _X, "rdf": _RDF, "dc": _DC, "Iptc4xmpCore": _IPTC}
# Both are a language alternative: a text for each language, and one by default.
_FIELDS = (f"{{{_DC}}}description", f"{{{_IPTC}}}AltTextAccessibility")
_BEGIN = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
_END = '\n<?xpacket end="w"?>\n'
_MOST_BYTES = 1 << 24


def has_texts(path: Path) -> bool:
    """Whether a sidecar has both texts already."""
    tree = _read(path)
    return all(_text(tree, field) for field in _FIELDS)


def read_texts(path: Path) -> list[str]:
    """The texts that a sidecar has."""
    tree = _read(path)
    return [text for field in _FIELDS if (text := _text(tree, field))]


def with_texts(path: Path, text: str, *, overwrite: bool = False) -> bytes:
    """The sidecar at `path`, or a new one, with the text where there is none.

    With `overwrite`, the text takes the place of the default one that is there. Texts in other
    languages, and everything else in the file, stay.
    """
    before, tree, after = _parse(path) if path.exists() else ([], _new(), [])
    for field in _FIELDS:
        if overwrite or not _text(tree, field):
            _set(tree, field, text)
    ET.indent(tree, " ")
    parts = [ET.tostring(part, "unicode") for part in (*before, tree, *after)]
    return (_BEGIN + "\n".join(parts) + _END).encode("utf-8")


def _new() -> ET.Element:
    root = ET.Element(f"{{{_X}}}xmpmeta")
    description = ET.SubElement(ET.SubElement(root, f"{{{_RDF}}}RDF"), f"{{{_RDF}}}Description")
    description.set(f"{{{_RDF}}}about", "")
    for prefix, uri in _PREFIXES.items():
        ET.register_namespace(prefix, uri)
    return root


def _read(path: Path) -> ET.Element:
    return _parse(path)[1]


def _parse(path: Path) -> tuple[list[ET.Element], ET.Element, list[ET.Element]]:
    """The tree in a sidecar; and the comments before and after it, which are not in the tree."""
    content = path.read_bytes()[: _MOST_BYTES + 1]
    unusable = PictureError(f"{path} is not XMP that can be read, and was left as it is: repair it")
    # XMP has no document type; one would only be there to unfold into gigabytes.
    if len(content) > _MOST_BYTES or b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise unusable
    for prefix, uri in _PREFIXES.items():
        ET.register_namespace(prefix, uri)
    try:
        outside: tuple[list[ET.Element], list[ET.Element]] = ([], [])
        depth, ended = 0, False
        for event, value in ET.iterparse(
            io.BytesIO(content), ["start-ns", "start", "end", "comment"]
        ):
            if event == "start-ns":
                _keep_prefix(*value)
            elif event == "comment":
                if depth == 0:
                    outside[ended].append(value)
            else:
                depth += 1 if event == "start" else -1
                ended = depth == 0
        builder = ET.TreeBuilder(insert_comments=True, insert_pis=True)
        root: ET.Element = ET.fromstring(content, ET.XMLParser(target=builder))
    except (ET.ParseError, ValueError, LookupError):
        raise unusable from None
    if _descriptions(root) == []:
        raise unusable
    return outside[0], root, outside[1]


def _keep_prefix(prefix: str, uri: str) -> None:
    """Let other people's prefixes stay; those that Python numbers itself may change."""
    if prefix and uri not in _PREFIXES.values() and not re.fullmatch(r"ns\d+", prefix):
        ET.register_namespace(prefix, uri)


def _descriptions(root: ET.Element) -> list[ET.Element]:
    return list(root.iter(f"{{{_RDF}}}Description"))


def _text(root: ET.Element, field: str) -> str:
    """The default text of a field, or any that there is."""
    for description in _descriptions(root):
        if (attribute := description.get(field)) and attribute.strip():
            return attribute.strip()
        for alternative in description.iterfind(f"{field}//{{{_RDF}}}li"):
            if alternative.text and alternative.text.strip():
                return alternative.text.strip()
        plain = description.findtext(field)
        if plain and plain.strip():
            return plain.strip()
    return ""


def _set(root: ET.Element, field: str, text: str) -> None:
    holder = next(
        (d for d in _descriptions(root) if d.find(field) is not None or d.get(field) is not None),
        _descriptions(root)[0],
    )
    holder.attrib.pop(field, None)
    element = holder.find(field)
    if element is None:
        element = ET.SubElement(holder, field)
    alternatives = element.find(f"{{{_RDF}}}Alt")
    if alternatives is None:
        element.text = None
        alternatives = ET.SubElement(element, f"{{{_RDF}}}Alt")
    for entry in alternatives:
        if entry.get(_LANG) == "x-default":
            entry.text = text
            return
    entry = ET.Element(f"{{{_RDF}}}li", {_LANG: "x-default"})
    entry.text = text
    alternatives.insert(0, entry)
