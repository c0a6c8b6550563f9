"""The car's faces of an OpenFOAM mesh, and a field on them carried to the vertices of a surface."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from uqno.geometry.surface import Surface
from uqno.types import Integers, Reals

NEIGHBOURS = 12  # faces that a vertex takes its value from
_LIST = re.compile(r"^\s*(\d+)\s*\n\(\n", re.M)


@dataclass(frozen=True, eq=False)
class Patch:
    """Faces of the mesh on the body: centres (f, 3), areas with outward normals (f, 3), cells (f).

    Outward of the body, that is, into the air.
    """

    centres: Reals
    area_vectors: Reals
    cells: Integers


def read_patch(mesh: Path, name: str = "car") -> Patch:
    """The patch `name` of an ASCII `polyMesh` folder."""
    first, count = _range(mesh / "boundary", name)
    points = np.fromstring(
        _items(mesh / "points").replace("(", " ").replace(")", " "), sep=" "
    ).reshape(-1, 3)
    faces = _items(mesh / "faces").splitlines()[first : first + count]
    owner = np.array(_items(mesh / "owner").split()[first : first + count], dtype=np.int64)
    corners = [
        np.array(face[face.index("(") + 1 : face.rindex(")")].split(), dtype=np.int64)
        for face in faces
    ]
    shapes = [_polygon(points[corner]) for corner in corners]
    centres, outward = (np.array(values) for values in zip(*shapes, strict=True))
    # OpenFOAM's faces look out of the air, into the body.
    return Patch(centres, -outward, owner)


def read_cells(field: Path) -> Reals:
    """The values of an ASCII scalar field in all cells."""
    text = field.read_text(encoding="ascii").partition("internalField")[2]
    if text.lstrip().startswith("uniform"):
        raise ValueError(f"{field} is uniform: the solver has not changed it")
    return np.array(_body(text, field).split(), dtype=np.float64)


def _range(boundary: Path, name: str) -> tuple[int, int]:
    text = boundary.read_text(encoding="ascii")
    match = re.search(rf"^\s*{name}\s*\{{([^}}]*)\}}", text, re.M)
    if match is None:
        raise ValueError(f"{boundary} has no patch {name!r}: the mesher did not find the car")
    numbers = dict(re.findall(r"(nFaces|startFace)\s+(\d+);", match[1]))
    return int(numbers["startFace"]), int(numbers["nFaces"])


def _items(file: Path) -> str:
    return _body(file.read_text(encoding="ascii"), file)


def _body(text: str, file: Path) -> str:
    """What stands between the parentheses of the first list: N ( … )."""
    begin = _LIST.search(text)
    end = text.find("\n)", begin.end()) if begin else -1
    if begin is None or end < 0:
        raise ValueError(f"{file} holds no ASCII list: it is cut short or in another format")
    return text[begin.end() : end]


def _polygon(corners: Reals) -> tuple[Reals, Reals]:
    """Centre and area vector of a polygon (k, 3), as the sum of triangles around its mean."""
    middle = corners.mean(axis=0)
    following = np.roll(corners, -1, axis=0)
    areas = 0.5 * np.cross(corners - middle, following - middle)
    total = areas.sum(axis=0)
    size = np.linalg.norm(areas, axis=1)
    centres = (corners + following + middle) / 3
    weighted = (size[:, None] * centres).sum(axis=0) / max(size.sum(), 1e-300)
    return weighted, total


def at_vertices(patch: Patch, values: Reals, body: Surface) -> Reals:
    """A field of a patch at the vertices of the body whose left half the patch covers.

    A plane through the values of the nearest faces, in the tangent plane of the vertex: least
    squares, weighted by nearness and by how much a face looks the way the vertex does, so that the
    roof does not blur into the base. The answer is never outside the neighbours' values.

    Args:
        patch: f faces.
        values: of the field at the faces, (f,).
        body: n vertices.

    Returns:
        (n,).
    """
    centres, vectors = patch.centres, patch.area_vectors
    flip = np.array([1.0, -1.0, 1.0])
    both = np.concatenate([centres, centres * flip])  # a vertex in the plane has faces on each side
    normals = np.concatenate([vectors, vectors * flip])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    values = np.concatenate([values, values])
    # Both halves of the car ask at the same place: the answer is symmetric.
    side = np.where(body.points[:, 1:2] < 0, flip, 1.0)
    points, up = body.points * side, body.normals * side
    distance, near = cKDTree(both).query(points, k=NEIGHBOURS)
    weight = (1 - (distance / (1.001 * distance[:, -1:])) ** 2) ** 2
    weight *= np.maximum(np.einsum("nkd,nd->nk", normals[near], up), 0.03) ** 2
    plane = _tangents(up)
    offset = np.einsum("nkd,ndt->nkt", both[near] - points[:, None], plane)
    offset /= distance[:, -1:, None]
    basis = np.concatenate([np.ones((*near.shape, 1)), offset], axis=2)
    matrix = np.einsum("nk,nki,nkj->nij", weight, basis, basis)
    total = weight.sum(axis=1)
    # Faces in a line leave one slope open: a slight pull to 0 decides.
    matrix[:, [1, 2], [1, 2]] += 1e-3 * total[:, None]
    right = np.einsum("nk,nki,nk->ni", weight, basis, values[near])
    fitted = np.linalg.solve(matrix, right[..., None])[:, 0, 0]
    return np.clip(fitted, values[near].min(axis=1), values[near].max(axis=1))


def _tangents(normals: Reals) -> Reals:
    """Two unit vectors (n, 3, 2) orthogonal to each normal and to each other."""
    least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    first = np.cross(normals, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(normals, first)], axis=2)
