//go:build kates_safe

package parts

import "reflect"

// Table decodes nothing in this build: generated decoders do, and objects share no parts.
type Table struct{}

// New makes a table that knows no type.
func New(reflect.Type, bool) *Table { return &Table{} }

// Shares is false.
func (*Table) Shares() bool { return false }

// Decode is false: the object has to be decoded by the generated decoder.
func (*Table) Decode(any, []byte) bool { return false }
