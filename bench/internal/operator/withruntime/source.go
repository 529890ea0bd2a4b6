package withruntime

import _ "embed"

// These are the sources of the operator, whose lines are counted: the common part, and the part
// of one variant.
var (
	//go:embed operator.go
	Source string
	//go:embed update.go
	UpdateSource string
	//go:embed apply.go
	ApplySource string
)
