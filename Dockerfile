# seed_acme for CPUs. Where it trains, /work, is a volume: its runs stay.
#
#   docker build --tag seed-acme .
#   mkdir -p work  # Docker would make it as root
#   docker run --rm --volume "$PWD/work:/work" seed-acme train --config=catch_vtrace
FROM python:3.11-slim-bookworm

ENV LANG=C.UTF-8 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1

# Libraries that OpenCV (Atari) and MuJoCo load. A distribution keeps no old versions to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libegl1 libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/*

# What to install beside the core: extras of setup.py.
ARG EXTRAS=gym,gymnasium,box2d,atari,mujoco,dm-control,video
WORKDIR /opt/seed_acme
# First what the installation is decided by, so that a change of code does not repeat it: without
# code the package is empty, and brings what it needs.
COPY scripts/launchpad_wheel.py scripts/
COPY launchpad_wheel launchpad_wheel
RUN python scripts/launchpad_wheel.py /opt/wheels
COPY setup.py pyproject.toml constraints.txt ./
# setup.py reads these two.
COPY seed_acme/version.py seed_acme/
COPY seed_acme/checks/actor_packages.py seed_acme/checks/
# constraints.txt pins the versions.
# hadolint ignore=DL3013
RUN PIP_CONSTRAINT=constraints.txt python -m pip install --no-cache-dir \
        --find-links /opt/wheels ".[${EXTRAS}]"
COPY . .
RUN PIP_CONSTRAINT=constraints.txt python -m pip install --no-cache-dir --no-deps \
        --force-reinstall .

RUN useradd --create-home --uid 1000 trainer \
    && mkdir /work \
    && chown trainer /work
USER 1000
WORKDIR /work
VOLUME /work
ENTRYPOINT ["seed-acme"]
CMD ["--help"]
