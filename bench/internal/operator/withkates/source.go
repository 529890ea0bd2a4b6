package withkates

import _ "embed"

// Source is that of the operator, for its lines to be counted.
//
//go:embed operator.go
var Source string
