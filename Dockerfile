# mimir with git, bubblewrap and tini, for a user that is not root. CI builds it where a Docker daemon answers:
#   make image
# The sandbox makes user namespaces, which the default profiles of Docker forbid:
#   docker run --rm -it --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     --security-opt systempaths=unconfined --volume "$PWD:/project" mimir doctor
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git tini \
    && rm -rf /var/lib/apt/lists/*

COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir --compile /tmp/*.whl && rm /tmp/*.whl

# The id may differ from that of the project's owner: docker run --user "$(id -u):$(id -g)"
RUN useradd --create-home --uid 10001 mimir
USER mimir
ENV HOME=/home/mimir
WORKDIR /project

# tini passes signals on and reaps the processes of ended commands.
ENTRYPOINT ["tini", "--", "mimir"]
CMD ["--help"]
