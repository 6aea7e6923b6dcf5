# docker build -t eadpr . && docker run --rm -it -v "$PWD/out:/work/reports" eadpr
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /work
COPY . .
ENV TORCH_BACKEND=cpu PATH=/work/.venv/bin:$PATH
RUN git config --global --add safe.directory /work && make install
CMD ["make", "repro"]
