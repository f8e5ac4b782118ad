"""Arguments of a launch on Vertex AI."""

VERTEX = ('train', '--launch=vertex_ai', '--config=catch_vtrace')
CLOUD = ('--cloud.project=my-project-123', '--cloud.bucket=gs://bucket')
HANG_S = 600.0
