# docker build -t eadpr . && docker run --rm -it -v "$PWD/out:/app/reports" eadpr
# Files of collections are not copied: give your own by -v "$PWD/data/sources:/app/data/sources" too.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
ENV TORCH_BACKEND=cpu PATH=/app/.venv/bin:$PATH
RUN git config --global --add safe.directory /app && make install
CMD ["make", "repro"]
