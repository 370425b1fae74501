"""Readers of the job's tables that are not Spark, one for each format, behind one face.

They stand on what others wrote: pyiceberg, delta-rs, hudi-rs' look at Hudi's timeline, a thrift client of Hive's
metastore, and Arrow for files. Nothing of the code that writes the tables is used to read them.
"""
