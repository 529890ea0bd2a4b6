package withruntime

import _ "embed"

// The sources of the operator, for their lines to be counted: what all variants have, and what one of them has.
var (
	//go:embed operator.go
	Source string
	//go:embed update.go
	UpdateSource string
	//go:embed apply.go
	ApplySource string
)
