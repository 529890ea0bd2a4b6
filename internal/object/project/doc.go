// Package project decodes some fields of an object into a struct that has no others.
//
// A [Plan] is made once for a pair of types: the Go type of a kind, and a struct with JSON tags
// that names some of its fields. It decodes objects from protobuf without a value of the kind's
// own type: what the struct has no field for is skipped, not decoded. The result is what
// encoding/json would make of the object's JSON: [Plan.Protobuf] and a decoder of JSON agree.
//
// The names and types of the struct's fields are compared with those of the kind when the plan is
// made. So a misspelt field is an error there, and not a field that is always empty.
package project
