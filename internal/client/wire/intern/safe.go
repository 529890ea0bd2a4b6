//go:build kates_safe

package intern

// Table shares nothing in this build.
type Table struct{}

// Object leaves the object as it is.
func (*Table) Object(_, _ any, _ bool) {}
