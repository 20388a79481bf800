"""Only what pyproject.toml cannot say: in the wheel, data/ becomes the folder course_lib/_data."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["course_lib", "course_lib.*"]), "course_lib._data"],
    package_dir={"course_lib": "course_lib", "course_lib._data": "data"},
    package_data={
        "course_lib": ["py.typed", "**/*.toml", "**/*.js", "**/*.css", "**/*.mjs"],
        "course_lib._data": ["**/*"],
    },
)
