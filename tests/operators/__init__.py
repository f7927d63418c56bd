"""Every operator, through one grid."""
