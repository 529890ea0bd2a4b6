package withruntime

import _ "embed"

var (
	//go:embed gateway.go
	gateway string
	//go:embed configure.go
	configure string
	//go:embed parts.go
	partsSource string
	//go:embed write.go
	write string
)

// Sources are the Go files of the gateway.
func Sources() []string { return []string{gateway, configure, partsSource, write} }
