"""XMP sidecars: what is written is read by exiftool, and what was there stays."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import sightline
from sightline.bulk.xmp import has_texts, with_texts
from sightline.errors import PictureError

# As other programs write them: another prefix, an attribute, a rating, a text in German.
LIGHTROOM = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 7.0">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:purl="http://purl.org/dc/elements/1.1/"
    xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/"
    xmp:Rating="4" crs:Exposure2012="+0.35">
   <purl:description><rdf:Alt><rdf:li xml:lang="x-default">my words</rdf:li>
     <rdf:li xml:lang="de-DE">meine Worte</rdf:li></rdf:Alt></purl:description>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""


def exiftool(path: Path) -> dict[str, object]:
    if shutil.which("exiftool") is None:
        pytest.skip("needs exiftool")
    (fields,) = json.loads(
        subprocess.run(
            ["exiftool", "-j", "-G1", "-warning", "-XMP:all", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    return fields


def test_a_new_sidecar_is_read_by_exiftool(captioner, album, tmp_path):
    output = tmp_path / "xmp"
    sightline.caption_all(album, output, captioner=captioner, format="xmp")
    text = captioner.caption(album / "inner" / "cat.jpg").text
    assert has_texts(output / "inner" / "cat.xmp")
    fields = exiftool(output / "inner" / "cat.xmp")
    assert fields["XMP-dc:Description"] == fields["XMP-iptcCore:AltTextAccessibility"] == text
    assert not [name for name in fields if name.endswith("Warning")]


def test_what_others_wrote_stays(tmp_path):
    path = tmp_path / "dog.xmp"
    path.write_text(LIGHTROOM, "utf-8")
    assert not has_texts(path)
    path.write_bytes(with_texts(path, "a dog <runs> & barks"))
    content = path.read_text("utf-8")
    for kept in ("my words", "meine Worte", 'crs:Exposure2012="+0.35"', 'xmp:Rating="4"'):
        assert kept in content
    assert "Adobe XMP Core" in content
    assert has_texts(path)
    fields = exiftool(path)
    assert fields["XMP-dc:Description"] == "my words"
    assert fields["XMP-iptcCore:AltTextAccessibility"] == "a dog <runs> & barks"
    path.write_bytes(with_texts(path, "a dog", overwrite=True))
    fields = exiftool(path)
    assert fields["XMP-dc:Description"] == fields["XMP-iptcCore:AltTextAccessibility"] == "a dog"
    assert fields["XMP-dc:Description-de-DE"] == "meine Worte"
    assert fields["XMP-xmp:Rating"] == 4


def test_comments_and_the_prefixes_of_python_stay(tmp_path):
    path = tmp_path / "dog.xmp"
    text = LIGHTROOM.replace("crs:", "ns0:").replace("xmlns:crs", "xmlns:ns0")
    text = text.replace(" <rdf:RDF", "<!-- in front --> <?keep this?><rdf:RDF")
    text = text.replace("<purl:desc", "<!-- mine & yours --><purl:desc")
    text = text.replace("<x:xmpmeta", "<!-- before -->\n<x:xmpmeta").replace(
        "</x:xmpmeta>", "</x:xmpmeta><!-- after -->"
    )
    path.write_text(text, "utf-8")
    for overwrite in (False, True):
        path.write_bytes(with_texts(path, "a dog", overwrite=overwrite))
        content = path.read_text("utf-8")
        comments = ["<!-- before -->", "<!-- in front -->", "<?keep this?>"]
        comments += ["<!-- mine & yours -->", "<!-- after -->"]
        assert [content.count(comment) for comment in comments] == 5 * [1]
        places = [content.index(comment) for comment in comments]
        assert places == sorted(places)
        assert places[0] < content.index("<x:xmpmeta")
        assert content.index("</x:xmpmeta") < places[-1]
        assert content.count("<?xpacket") == 2
    fields = exiftool(path)
    assert fields["XMP-crs:Exposure2012"] == "+0.35"
    assert fields["XMP-dc:Description"] == "a dog"


def test_the_sidecar_that_is_there_is_the_one_that_changes(captioner, album):
    (album / "cat.jpg.xmp").write_text(LIGHTROOM, "utf-8")
    sightline.caption_all(album / "cat.jpg", album, captioner=captioner, format="xmp")
    assert "my words" in (album / "cat.jpg.xmp").read_text("utf-8")
    assert has_texts(album / "cat.jpg.xmp")
    assert not (album / "cat.xmp").exists()


@pytest.mark.parametrize(
    "content",
    ["", "<x:xmpmeta", "<a/>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "\0\0"],
)
def test_a_damaged_sidecar_is_left_alone_and_the_rest_goes_on(captioner, album, tmp_path, content):
    (album / "cat.xmp").write_text(content)
    with pytest.raises(PictureError, match="was left as it is"):
        with_texts(album / "cat.xmp", "a dog")
    summary = sightline.caption_all(album, album, captioner=captioner, format="xmp")
    assert (summary.captioned, summary.failed) == (6, 1)
    assert (album / "cat.xmp").read_text() == content
