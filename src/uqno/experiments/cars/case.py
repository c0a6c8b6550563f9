"""The OpenFOAM case of a car: half a wind tunnel with moving ground, steady RANS, k-ω SST.

*The edges.* The flow leaves the body at the edges of the roof and the base, so that all of the
tail's pressure hangs on them. The mesher is given these edges and puts lines of its own on them
(explicit feature snap); the background mesh is aligned with the base, too.

*One Reynolds number.* Re_L = U L / ν is the same for all cars: ν follows the length.
"""

from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from uqno.experiments.cars.shapes import BASE_DOME, Shape, surface
from uqno.geometry.surface import Surface


@dataclass(frozen=True)
class Flow:
    """All that decides the flow around a shape, but for the version of OpenFOAM."""

    speed: float = 20.0  # U in m/s
    reynolds: float = 5e6  # of the length
    density: float = 1.225  # kg/m³, from kinematic pressure to Pa
    intensity: float = 0.01  # of the inlet's turbulence
    viscosity_ratio: float = 10.0  # ν_t / ν at the inlet
    cell: float = 0.75  # of the background mesh, m
    surface_level: int = 4  # halvings of a cell at the body
    shift: float = 0.0  # of the background mesh along x, m: to measure how labels repeat
    refine: int = 4  # of the surface that is meshed
    iterations: int = 200  # at most
    averaged: int = 80  # of the last, where the residuals did not stop the solver before
    pressure_residual: float = 2e-4
    other_residual: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.averaged < self.iterations:
            raise ValueError(
                f"averaged must lie in 1 to iterations − 1 = {self.iterations - 1}, got "
                f"{self.averaged}"
            )

    def record(self) -> dict[str, Any]:
        """The settings as JSON-able values."""
        return asdict(self)

    @property
    def dynamic_pressure(self) -> float:
        """½ ρ U² in Pa."""
        return 0.5 * self.density * self.speed**2


# The tunnel in metres, at least: before and behind the tail, to the side, upwards.
BEFORE, BEHIND, ACROSS, UPWARDS = 14.25, 13.5, 6.0, 6.0
HEADER = "FoamFile {{ version 2.0; format ascii; class {cls}; object {name}; }}\n"


def write_case(folder: Path, shape: Shape, settings: Flow) -> None:
    """Write all files that the tools need.

    Args:
        folder: empty, or not there yet.
        shape: of the car.
        settings: of the flow.
    """
    for name, text in _files(shape, settings).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        field = "volVectorField" if name == "0/U" else "volScalarField"
        kind = field if name.startswith("0/") else "dictionary"
        file.write_text(HEADER.format(cls=kind, name=file.name) + text, encoding="ascii")
    (folder / "constant/triSurface").mkdir(parents=True)
    write_stl(folder / "constant/triSurface/car.stl", surface(shape, settings.refine))


def write_stl(path: Path, body: Surface) -> None:
    """Write the triangles of a surface in the binary STL format.

    Args:
        path: the file to write.
        body: the surface.
    """
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    records = np.zeros(len(body.triangles), record)
    records["corners"] = body.points[body.triangles]
    with path.open("wb") as file:
        file.write(b"uqno car".ljust(80) + len(records).to_bytes(4, "little"))
        file.write(records.tobytes())


def frontal_area(body: Surface) -> float:
    """½ Σ |area along x|: the shadow that the car casts forwards, in m²."""
    return float(0.5 * np.abs(body.area_vectors[:, 0]).sum())


def _files(shape: Shape, settings: Flow) -> dict[str, str]:
    return {
        "system/controlDict": _control(shape, settings),
        "system/blockMeshDict": _block_mesh(shape, settings),
        "system/snappyHexMeshDict": _snappy(shape, settings),
        "system/fvSchemes": SCHEMES,
        "system/fvSolution": SOLUTION % settings.record(),
        "system/meshQualityDict": MESH_QUALITY,
        "system/surfaceFeatureExtractDict": EDGES,
        "constant/transportProperties": TRANSPORT % _viscosity(shape, settings),
        "constant/turbulenceProperties": TURBULENCE,
        **_fields(shape, settings),
    }


def _viscosity(shape: Shape, settings: Flow) -> float:
    return settings.speed * shape.length / settings.reynolds


def _control(shape: Shape, settings: Flow) -> str:
    return CONTROL % {
        "iterations": settings.iterations,
        "start": settings.iterations - settings.averaged,
        "speed": settings.speed,
        "length": shape.length,
    }


def _block_mesh(shape: Shape, settings: Flow) -> str:
    cell = settings.cell
    sides = (BEFORE, BEHIND, ACROSS, UPWARDS)
    before, behind, across, upwards = (ceil(side / cell - 1e-9) for side in sides)
    tail = shape.length - BASE_DOME + settings.shift
    return BLOCK_MESH % {
        "x0": tail - before * cell,
        "x1": tail + behind * cell,
        "y1": across * cell,
        "z1": upwards * cell,
        "cells": f"{before + behind} {across} {upwards}",
    }


def _snappy(shape: Shape, settings: Flow) -> str:
    level = settings.surface_level
    return SNAPPY % {
        "near": _box(shape, -0.8, (1.2, 0.7, 0.7)),
        "wake": _box(shape, -1.8, (4.5, 1.5, 1.3)),
        "surface": level,
        "distance": level - 1,
        "near_level": level - 2,
        "wake_level": level - 3,
        "x": shape.length + BEHIND - 1.03,
    }


def _box(shape: Shape, first: float, room: tuple[float, float, float]) -> str:
    """A box from x = first and the ground to the car's far corner and some room beyond."""
    corner = np.array([shape.length, shape.width / 2, shape.height]) + room
    return f"min ({first:g} 0 0); max ({' '.join(f'{c:.4f}' for c in corner)});"


def _fields(shape: Shape, settings: Flow) -> dict[str, str]:
    """Uniform flow to start from: a potential flow diverged or took longer."""
    k = 1.5 * (settings.intensity * settings.speed) ** 2
    omega = k / (settings.viscosity_ratio * _viscosity(shape, settings))
    u = f"({settings.speed} 0 0)"
    wall = {name: f"{name}WallFunction" for name in ("kqR", "omega", "nutk")}
    ground = f"fixedValue; value uniform {u}"  # it moves with the air
    fields: dict[str, tuple[str, str, str, str, str]] = {
        # dimensions, inside, outlet, ground, car
        "U": ("[0 1 -1 0 0 0 0]", u, "inletOutlet", ground, "noSlip"),
        "p": ("[0 2 -2 0 0 0 0]", "0", "fixedValue", "zeroGradient", "zeroGradient"),
        "k": ("[0 2 -2 0 0 0 0]", f"{k:.6g}", "inletOutlet", wall["kqR"], wall["kqR"]),
        "omega": ("[0 0 -1 0 0 0 0]", f"{omega:.6g}", "inletOutlet", wall["omega"], wall["omega"]),
        "nut": ("[0 2 -1 0 0 0 0]", "0", "calculated", wall["nutk"], wall["nutk"]),
    }
    return {f"0/{name}": _field(name, *values) for name, values in fields.items()}


def _field(name: str, dimensions: str, inside: str, outlet: str, ground: str, car: str) -> str:
    value = f"value uniform {inside};"
    zero = inside if name != "U" else "(0 0 0)"
    inlet = {"p": "zeroGradient", "nut": "calculated"}.get(name, "fixedValue")
    return (
        f"dimensions {dimensions};\ninternalField uniform {inside};\nboundaryField\n{{\n"
        f"  inlet {{ type {inlet}; {value} }}\n"
        f"  outlet {{ type {outlet}; inletValue uniform {zero}; {value} }}\n"
        f"  ground {{ type {ground}; {value if 'value' not in ground else ''} }}\n"
        f"  car {{ type {car}; {value if car != 'noSlip' else ''} }}\n"
        "  symmetry { type symmetryPlane; }\n  far { type slip; }\n}\n"
    )


CONTROL = """application simpleFoam;
startFrom startTime; startTime 0; stopAt endTime; endTime %(iterations)d; deltaT 1;
writeControl timeStep; writeInterval %(iterations)d; purgeWrite 0;
writeFormat ascii; writePrecision 9; writeCompression off; timeFormat general; timePrecision 8;
runTimeModifiable false;
functions
{
  forces
  {
    type forceCoeffs; libs ("libforces.so"); patches (car); rho rhoInf; rhoInf 1;
    liftDir (0 0 1); dragDir (1 0 0); pitchAxis (0 1 0); CofR (0 0 0);
    magUInf %(speed)g; lRef %(length)g; Aref 1; writeControl timeStep; writeInterval 1;
  }
  average
  {
    type fieldAverage; libs ("libfieldFunctionObjects.so"); timeStart %(start)d;
    writeControl writeTime;
    fields ( p { mean on; prime2Mean off; base iteration; } );
  }
}
"""
BLOCK_MESH = """scale 1;
vertices
(
  (%(x0).9g 0 0) (%(x1).9g 0 0) (%(x1).9g %(y1)g 0) (%(x0).9g %(y1)g 0)
  (%(x0).9g 0 %(z1)g) (%(x1).9g 0 %(z1)g) (%(x1).9g %(y1)g %(z1)g) (%(x0).9g %(y1)g %(z1)g)
);
blocks ( hex (0 1 2 3 4 5 6 7) (%(cells)s) simpleGrading (1 1 1) );
boundary
(
  inlet { type patch; faces ((0 4 7 3)); }
  outlet { type patch; faces ((1 2 6 5)); }
  ground { type wall; faces ((0 3 2 1)); }
  symmetry { type symmetryPlane; faces ((0 1 5 4)); }
  far { type patch; faces ((3 7 6 2) (4 5 6 7)); }
);
"""
EDGES = """car.stl
{
  extractionMethod extractFromSurface; extractFromSurfaceCoeffs { includedAngle 150; }
}
"""
SNAPPY = """castellatedMesh true; snap true; addLayers false;
geometry
{
  car.stl { type triSurfaceMesh; name car; }
  near { type searchableBox; %(near)s }
  wake { type searchableBox; %(wake)s }
}
castellatedMeshControls
{
  maxLocalCells 1000000; maxGlobalCells 2000000; minRefinementCells 0; nCellsBetweenLevels 3;
  features ( { file "car.eMesh"; level %(surface)d; } );
  resolveFeatureAngle 30; allowFreeStandingZoneFaces true;
  refinementSurfaces { car { level (%(surface)d %(surface)d); patchInfo { type wall; } } }
  refinementRegions
  {
    car { mode distance; levels ((0.25 %(distance)d)); }
    near { mode inside; levels ((1 %(near_level)d)); }
    wake { mode inside; levels ((1 %(wake_level)d)); }
  }
  locationInMesh (%(x).9g 5.03 5.03);
}
snapControls
{
  nSmoothPatch 3; tolerance 2.0; nSolveIter 30; nRelaxIter 5; nFeatureSnapIter 10;
  implicitFeatureSnap false; explicitFeatureSnap true; multiRegionFeatureSnap false;
}
addLayersControls
{
  relativeSizes true; layers {} expansionRatio 1.2; finalLayerThickness 0.5; minThickness 0.1;
  nGrow 0; featureAngle 60; nRelaxIter 3; nSmoothSurfaceNormals 1; nSmoothNormals 3;
  nSmoothThickness 10; maxFaceThicknessRatio 0.5; maxThicknessToMedialRatio 0.3;
  minMedialAxisAngle 90; nBufferCellsNoExtrude 0; nLayerIter 50;
}
meshQualityControls
{
  #include "meshQualityDict"
  nSmoothScale 4; errorReduction 0.75;
}
mergeTolerance 1e-6;
"""
MESH_QUALITY = """maxNonOrtho 65; maxBoundarySkewness 20; maxInternalSkewness 4; maxConcave 80;
minVol 1e-13; minTetQuality 1e-15; minArea -1; minTwist 0.02; minDeterminant 0.001;
minFaceWeight 0.05; minVolRatio 0.01; minTriangleTwist -1;
"""
SCHEMES = """ddtSchemes { default steadyState; }
gradSchemes { default Gauss linear; grad(U) cellLimited Gauss linear 1; }
divSchemes
{
  default none;
  div(phi,U) bounded Gauss linearUpwindV grad(U);
  div(phi,k) bounded Gauss upwind;
  div(phi,omega) bounded Gauss upwind;
  div((nuEff*dev2(T(grad(U))))) Gauss linear;
}
laplacianSchemes { default Gauss linear limited 0.5; }
interpolationSchemes { default linear; }
snGradSchemes { default limited 0.5; }
wallDist { method meshWave; }
"""
SOLUTION = """solvers
{
  p { solver GAMG; smoother GaussSeidel; tolerance 1e-8; relTol 0.1; }
  "(U|k|omega)" { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-9; relTol 0.1; }
}
SIMPLE
{
  consistent yes; nNonOrthogonalCorrectors 0;
  residualControl { p %(pressure_residual)g; "(U|k|omega)" %(other_residual)g; }
}
relaxationFactors { fields { p 1; } equations { U 0.85; "(k|omega)" 0.7; } }
"""
TRANSPORT = "transportModel Newtonian; nu %.9g;\n"
TURBULENCE = """simulationType RAS;
RAS { RASModel kOmegaSST; turbulence on; printCoeffs off; }
"""
