"""Add the Java libraries in Anserini's jar to a bill of materials: those that say who they are in META-INF/maven."""

import importlib.util
import json
import sys
import zipfile
from pathlib import Path


def read_libraries(jar: Path) -> list[dict[str, str]]:
    """Return the libraries as CycloneDX's components, by their names."""
    components = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("META-INF/maven/") and name.endswith("/pom.properties"):
                lines = archive.read(name).decode().splitlines()
                pom = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
                group, artifact, version = (pom[key].strip() for key in ("groupId", "artifactId", "version"))
                url = f"pkg:maven/{group}/{artifact}@{version}"
                about = {"group": group, "name": artifact, "version": version}
                components[url] = {"type": "library", "bom-ref": url, **about, "purl": url}
    return [components[url] for url in sorted(components)]


if __name__ == "__main__":
    out, package = Path(sys.argv[1]), Path(importlib.util.find_spec("pyserini").origin).parent
    bill = json.loads(out.read_text(encoding="utf-8"))
    for path in sorted(package.rglob("anserini-*-fatjar.jar")):
        bill["components"] += read_libraries(path)
    out.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
