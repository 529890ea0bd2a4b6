package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// Plan decodes the objects of one kind into values of one struct type. It is safe for concurrent
// use.
type Plan struct {
	target, source reflect.Type
	// direct decodes an object into the struct that into points to. It is nil if objects are
	// decoded as a whole, and then converted.
	direct func(raw []byte, into reflect.Value, known []string) error
}

// Compile makes a plan for a struct type and the Go type of a kind, which decodes from protobuf.
// It is an error if the struct has a field that the kind has not, or one that cannot hold what the
// kind's field has. The error names the field by its path in JSON.
func Compile(target, source reflect.Type) (*Plan, error) {
	if target.Kind() != reflect.Struct || source.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a projection of %s to %s: both have to be structs", source, target)
	}
	if err := (checker{source, map[[2]reflect.Type]bool{}}).check(target, source, ""); err != nil {
		return nil, fmt.Errorf("the type %s: %w", target, err)
	}
	p := &Plan{target: target, source: source}
	if !speaks(target) {
		p.direct = direct(target, source)
	}
	return p, nil
}

// compiled has the plans that were made, by their types.
var compiled sync.Map

// outcome is what was made of a pair of types.
type outcome struct {
	plan *Plan
	err  error
}

// For is [Compile] that makes the plan of a pair of types once.
func For(target, source reflect.Type) (*Plan, error) {
	pair := [2]reflect.Type{target, source}
	if done, ok := compiled.Load(pair); ok {
		return done.(outcome).plan, done.(outcome).err
	}
	plan, err := Compile(target, source)
	compiled.Store(pair, outcome{plan, err})
	return plan, err
}

// Direct reports whether the plan skips what is not wanted. Otherwise it decodes each object as a
// whole first: the struct has a field that only encoding/json can fill.
func (p *Plan) Direct() bool { return p.direct != nil }

// protobuf has the methods of generated Go types that decode from protobuf.
type protobuf interface {
	Unmarshal([]byte) error
}

// Protobuf decodes an object into a zero value of the struct type, which into points to. A text
// that equals a known one is that one, and takes no memory of its own.
func (p *Plan) Protobuf(raw []byte, into any, known ...string) error {
	v := reflect.ValueOf(into)
	if v.Type() != reflect.PointerTo(p.target) {
		return fmt.Errorf("a plan for %s decodes into no %T", p.target, into)
	}
	if p.direct != nil {
		return p.direct(raw, v, known)
	}
	whole := reflect.New(p.source).Interface()
	m, ok := whole.(protobuf)
	if !ok {
		return fmt.Errorf("%s does not decode from protobuf", p.source)
	}
	if err := m.Unmarshal(raw); err != nil {
		return err
	}
	return throughJSON(whole, into)
}

// throughJSON gives to what from looks like in JSON.
func throughJSON(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// deepest is how deep messages may be nested: JSON has such a bound, too.
const deepest = 1000

var (
	errDeep = errors.New("it is nested too deeply")
	errWire = errors.New("it has another form on the wire")
)
