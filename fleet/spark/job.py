"""What spark-submit runs: registers files, runs statements, writes answers. All of it is in the file that the argument names."""

import json
import os
import sys

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession


def told(**what):
    # One write a line: Spark's own lines may stand between ours.
    sys.stdout.write("\nunthrottle " + json.dumps(what) + "\n")
    sys.stdout.flush()


def anew(spark, table):
    # A view's plan holds those of all tables below it, as often as they are named: after some tables the driver has no memory for it. Here the
    # plan begins at the table's rows. Rows that a lost worker held are made again all the same.
    try:
        made = table._jdf
        return DataFrame(spark._jsparkSession.internalCreateDataFrame(made.queryExecution().toRdd(), made.schema(), False), spark)
    except Py4JError:  # a Spark without that
        return table


def run(job):
    spark = SparkSession.builder.getOrCreate()
    told(step="started")
    spark.createDataFrame([tuple(f) for f in job["files"]], "file_no INT, path STRING, row_count BIGINT").createOrReplaceTempView("files")
    for g in job["groups"]:
        rows = spark.read.schema(g["schema"]).parquet(*g["paths"])
        rows.select("*", "_metadata.file_path", rows["_metadata.row_index"].alias("file_row")).createOrReplaceTempView(g["view"])
    for t in job["tables"]:
        table = spark.sql(t["sql"])
        if t["keep"]:
            table = anew(spark, table).persist()
            told(step="made", name=t["name"], rows=table.count())
        table.createOrReplaceTempView(t["name"])
    for q in job["questions"]:
        with open(os.path.join(job["out"], q["name"]), "w", encoding="utf-8") as answer:
            lines = spark.sql(q["sql"])
            answer.write(json.dumps(lines.columns) + "\n")
            for row in lines.toLocalIterator():
                answer.write(json.dumps(list(row)) + "\n")
    told(step="answered", rows=len(job["questions"]))
    spark.stop()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        job = json.load(text)
    try:
        run(job)
    except Exception as e:
        told(step="failed", name=str(e)[:2000])
        raise
