"""Keep saved notebooks readable: a widget's view without its kernel shows "model not found", its picture stays.

`python -m prefill_decode.saving` tells the Jupyter server of this environment to do so.
"""

import json
import sys
from pathlib import Path

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SETTING = ("FileContentsManager", "pre_save_hook")
HOOK = "prefill_decode.saving.drop_widget_views"


def drop_widget_views(model: dict, **_: object) -> None:
    """Save the picture of a widget and not its view, which lives only as long as the kernel.

    Parameters
    ----------
    model : dict
        What is about to be saved, as Jupyter gives it to a `pre_save_hook`; changed in place. Views of widgets
        without a picture are left.
    """
    if model["type"] != "notebook" or model["content"]["nbformat"] != 4:
        return
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data.pop(WIDGET_VIEW, None)


def install(folder: Path | None = None) -> str:
    """Write the hook into `jupyter_server_config.json`, beside whatever else is set there.

    Parameters
    ----------
    folder : Path, optional
        A folder of Jupyter's configuration; that of this environment without one. The server reads this setting
        from no file in `jupyter_server_config.d`.

    Returns
    -------
    str
        One line that says what was done. A hook of somebody else's is left.

    Raises
    ------
    ValueError
        If the file is not JSON.
    """
    path = (folder or Path(sys.prefix, "etc", "jupyter")) / "jupyter_server_config.json"
    try:
        settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}): mend or remove it, then run this again") from error
    section, name = SETTING
    found = settings.setdefault(section, {}).setdefault(name, HOOK)
    if found != HOOK:
        return f"{path} names another {name}, {found}: left as it is, saved widgets may show 'model not found'"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    return f"saved notebooks keep the pictures of widgets: {path}"


if __name__ == "__main__":
    try:
        print(install())
    except ValueError as error:
        sys.exit(str(error))
