"""Read the caption files people have, all into one `CaptionDataset`.

Our own JSONL is in `data.jsonl`; here are everybody else's.
"""

import re
from pathlib import Path
from typing import Any

from sightline.data.dataset import SPLITS, CaptionDataset, CaptionedImage
from sightline.data.fields import field, load_json, optional_field, read_lines, split_name
from sightline.data.jsonl import read_jsonl
from sightline.errors import DataError

_PICTURE_FOLDERS = ("images", "Images", "Flicker8k_Dataset", "Flickr8k_Dataset", "flickr30k-images")


def read_dataset(
    path: Path | str,
    images: Path | str | None = None,
    *,
    dev_from_train: int | None = None,
    max_captions: int | None = None,
    train_pictures: int | None = None,
) -> CaptionDataset:
    """Read a caption file, or a folder that holds one, of any format we know.

    `images` is the folder of the pictures; without it they are looked for beside the caption file.
    With `dev_from_train` the file's dev split is the test split, and so many of its training
    pictures are the dev split. With `max_captions` further captions of a picture are left out. With
    `train_pictures` the training split is so many of its pictures, always the same.

    | what `path` is                                   | format                            |
    | ------------------------------------------------ | --------------------------------- |
    | `*.jsonl`, or a folder with `captions.jsonl`     | ours: image, captions, split      |
    | `dataset_*.json`, or a folder with one           | Karpathy's splits                 |
    | `captions_*.json`, or a folder with some         | COCO, the split in the file name  |
    | `image_info_*.json`                              | COCO's pictures without captions  |
    | `*.token.txt`, or a folder with one              | Flickr8k/30k and their split lists |
    """
    path = Path(path)
    if images is not None and not Path(images).is_dir():
        raise DataError(f"{images}: no such folder of pictures")
    picture_folder = None if images is None else Path(images)
    if path.is_dir():
        dataset = _read_folder(path, picture_folder)
    elif path.is_file():
        dataset = _read_file(path, picture_folder)
    else:
        raise DataError(f"{path}: no such file or folder")
    if not dataset.images:
        raise DataError(f"{path}: lists no pictures")
    if dev_from_train is not None:
        dataset = dataset.hold_out_dev(dev_from_train)
    if train_pictures is not None:
        dataset = dataset.with_training_pictures(train_pictures)
    return dataset if max_captions is None else dataset.with_captions(max_captions)


def _read_file(path: Path, images: Path | None) -> CaptionDataset:
    if path.suffix == ".jsonl":
        return read_jsonl(path, images)
    if path.suffix == ".json":
        content = load_json(path)
        if isinstance(content, dict) and ("annotations" in content or _is_coco_list(content)):
            return read_coco([path], images)
        if isinstance(content, dict) and "images" in content:
            return read_karpathy(path, images)
        raise DataError(
            f"{path}: neither Karpathy's layout (images with sentences) nor COCO's "
            "(images and annotations, or images alone)"
        )
    if path.name.endswith("token.txt") or path.suffix == ".token":
        return read_flickr8k(path, images)
    raise DataError(
        f"{path}: not a known caption format; give a .jsonl, a Karpathy or COCO .json, "
        "or Flickr8k's token.txt"
    )


def _read_folder(folder: Path, images: Path | None) -> CaptionDataset:
    if (folder / "captions.jsonl").is_file():
        return read_jsonl(folder / "captions.jsonl", images)
    for base in (folder, folder / "annotations"):
        if karpathy_files := sorted(base.glob("dataset_*.json")):
            return read_karpathy(_the_only(karpathy_files), images)
        if coco_files := sorted(base.glob("captions_*.json")):
            return read_coco(coco_files, images)
    token_files = sorted([*folder.glob("*token.txt"), *folder.glob("*.token")])
    # Flickr8k also comes with its captions as lemmas: nobody's words.
    if caption_files := [file for file in token_files if ".lemma." not in file.name]:
        return read_flickr8k(_the_only(caption_files), images)
    raise DataError(
        f"{folder}: no caption file in this folder; expected captions.jsonl, dataset_*.json, "
        "captions_*.json or *.token.txt"
    )


def _the_only(files: list[Path]) -> Path:
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise DataError(f"{files[0].parent}: several caption files ({names}); give one of them")
    return files[0]


def read_karpathy(path: Path, images: Path | None = None) -> CaptionDataset:
    """Karpathy's `dataset_flickr8k.json`, `dataset_flickr30k.json`, `dataset_coco.json`."""
    base = images or _find_pictures(path.parent)
    captioned_images = []
    for number, record in enumerate(field(load_json(path), "images", list, str(path))):
        where = f"{path}, image {number}"
        file_name = field(record, "filename", str, where)
        sentences = field(record, "sentences", list, where)
        part = optional_field(record, "filepath", str, "", where)  # COCO: train2014 or val2014
        folders = (base / part, path.parent.parent / part) if part else ()
        captioned_images.append(
            CaptionedImage(
                name=file_name,
                picture=next(filter(Path.is_dir, folders), base) / file_name,
                captions=tuple(field(sentence, "raw", str, where) for sentence in sentences),
                split=split_name(record.get("split"), where),
                id=optional_field(record, "cocoid", int, file_name, where),
            )
        )
    return CaptionDataset(tuple(captioned_images), format="karpathy")


def _is_coco_list(content: dict[str, Any]) -> bool:
    """Whether it lists pictures as `image_info_test2014.json` does, whose captions are secret."""
    pictures = content.get("images")
    first = pictures[0] if isinstance(pictures, list) and pictures else None
    return isinstance(first, dict) and "file_name" in first


def read_coco(paths: list[Path], images: Path | None = None) -> CaptionDataset:
    """COCO's `captions_*.json`: one file per split, the split taken from the file's name.

    `image_info_*.json` lists the pictures of the test server, which have no captions.
    """
    captioned_images: list[CaptionedImage] = []
    orphans: list[tuple[str, str]] = []
    for path in paths:
        content = load_json(path)
        captions: dict[Any, list[str]] = {}
        for number, record in enumerate(
            optional_field(content, "annotations", list, [], str(path))
        ):
            where = f"{path}, annotation {number}"
            picture_id = field(record, "image_id", (int, str), where)
            captions.setdefault(picture_id, []).append(field(record, "caption", str, where))
        name = re.search(r"(?<![a-z])(train|val|dev|test)", path.stem)
        split = split_name(name.group(), str(path)) if name else None
        base = images or _find_pictures(path.parent, also=_coco_folders(path))
        for number, record in enumerate(field(content, "images", list, str(path))):
            where = f"{path}, image {number}"
            file_name = field(record, "file_name", str, where)
            picture_id = field(record, "id", (int, str), where)
            captioned_images.append(
                CaptionedImage(
                    name=file_name,
                    picture=base / file_name,
                    captions=tuple(captions.pop(picture_id, ())),
                    split=split,
                    id=picture_id,
                )
            )
        orphans += [(str(key), text) for key, texts in captions.items() for text in texts]
    return CaptionDataset(tuple(captioned_images), tuple(orphans), format="coco")


def _coco_folders(captions: Path) -> list[Path]:
    """The pictures of `annotations/captions_val2014.json` are in `val2014` near by."""
    part = captions.stem.removeprefix("captions_").removeprefix("image_info_")
    up = captions.parent.parent
    return [base / part for base in (captions.parent, up, up / "images")]


def read_flickr8k(path: Path, images: Path | None = None) -> CaptionDataset:
    """Flickr8k's (or 30k's) token file, with the split lists that lie beside it."""
    base = images or _find_pictures(path.parent)
    captions: dict[str, list[str]] = {}
    for number, line in read_lines(path):
        key, tab, caption = line.partition("\t")
        name, hash_sign, _ = key.rpartition("#")
        if not (tab and hash_sign):
            raise DataError(f"{path}, line {number}: not 'picture.jpg#0<TAB>caption'")
        captions.setdefault(name, []).append(caption)
    splits: dict[str, list[str]] = {}
    for split in SPLITS:
        for listing in sorted(path.parent.glob(f"*{split}Images.txt")):
            for _, name in read_lines(listing):
                splits.setdefault(name.strip(), []).append(split)
    # A picture named by two lists appears once in each split: data.check reports that.
    captioned_images = [
        CaptionedImage(name, base / name, tuple(captions.get(name, ())), split)
        for name in dict.fromkeys([*captions, *splits])
        for split in splits.get(name, [None])
    ]
    return CaptionDataset(tuple(captioned_images), format="flickr8k")


def _find_pictures(folder: Path, also: list[Path] | None = None) -> Path:
    """Where the pictures of a caption file probably are; the file's own folder if nowhere else."""
    candidates = [*(also or []), *(folder / name for name in _PICTURE_FOLDERS)]
    candidates += [folder.parent / name for name in _PICTURE_FOLDERS]
    return next((candidate for candidate in candidates if candidate.is_dir()), folder)
