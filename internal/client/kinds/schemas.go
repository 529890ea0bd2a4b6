package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/internal/client/kinds/selectable"
)

// What a document may have. A server's own have some 20 levels, and some ten thousand shapes.
const (
	levelsMost = 256     // of a schema
	depthMost  = 10_000  // levels of what is passed over: as encoding/json reads
	partsMost  = 500_000 // shapes, kinds and selectable fields
)

var (
	errDeepSchema = fmt.Errorf("it has more than %d levels", levelsMost)
	errDeep       = fmt.Errorf("the OpenAPI document of the server has more than %d levels", depthMost)
	errManyParts  = fmt.Errorf("the OpenAPI document of the server has more than %d schemas", partsMost)
)

// ReadSchemas reads the schemas in the OpenAPI v3 document of a group version. The document also
// has kinds of other groups, which belong to every group: they are left out.
//
// If some schemas cannot be read, the error names them, and all others are returned. Of those that
// the error names, the shape is unknown, but not what else they declare. A document that is no
// JSON, or too large or deep, has none. It is read in one pass.
func ReadSchemas(gv schema.GroupVersion, raw []byte) (Schemas, error) {
	r := &schemaReader{Decoder: json.NewDecoder(bytes.NewReader(raw)), gv: gv}
	r.UseNumber() // a number may have any size: nobody reads one
	r.found = Schemas{map[string]*shape{}, map[string]string{}, map[string]selectable.Fields{}}
	err := r.member("components", func() error {
		return r.member("schemas", func() error {
			return r.object(r.schema)
		})
	})
	if err == nil {
		err = r.wrong // outside of the schemas
	}
	if _, more := r.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows the OpenAPI document of the server")
	}
	if err != nil {
		return Schemas{}, err
	}
	return r.found, errors.Join(r.errs...)
}

// schemaReader reads a document. An error of its methods ends that; what is only of another type
// than it should be is noted, and passed over.
type schemaReader struct {
	*json.Decoder
	gv    schema.GroupVersion
	found Schemas
	errs  []error

	level int   // of the value that is being read
	parts int   // that there are
	wrong error // what is wrong with the schema that is being read
}

// schema reads one schema of the document.
func (r *schemaReader) schema(name string) error {
	outside := r.wrong
	r.wrong = nil
	var d declared
	s, err := r.shape(&d)
	switch {
	case err != nil:
		return fmt.Errorf("the schema %s: %w", name, err)
	case r.wrong != nil:
		r.errs = append(r.errs, fmt.Errorf("the schema %s: %w", name, r.wrong))
	case s == nil:
		r.found.named[name] = &shape{}
	default:
		r.found.named[name] = s
	}
	r.wrong = outside
	for _, kind := range d.kinds {
		if kind.Group != r.gv.Group || kind.Version != r.gv.Version {
			continue
		}
		r.found.kinds[kind.Kind] = name
		if len(d.paths) > 0 {
			r.found.selectable[kind.Kind] = selectable.Custom(d.paths)
		}
	}
	return nil
}

// declared is what a schema says beside its shape.
type declared struct {
	kinds []schema.GroupVersionKind // "x-kubernetes-group-version-kind"
	paths []string                  // "x-kubernetes-selectable-fields"
}

// shape reads a shape, and what is declared beside it unless d is nil. It is nil for null.
func (r *schemaReader) shape(d *declared) (*shape, error) {
	first, err := r.Token()
	if err != nil {
		return nil, err
	}
	return r.shapeOf(first, d)
}

// shapeOf reads a shape whose first token was read.
func (r *schemaReader) shapeOf(first json.Token, d *declared) (*shape, error) {
	if first == nil {
		return nil, nil
	}
	s := &shape{}
	return s, r.objectOf(first, func(name string) (err error) {
		switch name {
		case "$ref":
			return r.text(&s.Ref)
		case "x-kubernetes-map-type":
			return r.text(&s.Map)
		case "x-kubernetes-list-type":
			return r.text(&s.List)
		case "x-kubernetes-preserve-unknown-fields":
			return r.flag(&s.Unknown)
		case "items":
			s.Items, err = r.shape(nil)
			return err
		case "additionalProperties":
			s.Others, err = r.others()
			return err
		case "properties":
			return r.object(func(name string) error {
				one, err := r.shape(nil)
				if s.Properties == nil {
					s.Properties = make(map[string]*shape)
				}
				s.Properties[name] = one
				return err
			})
		case "allOf":
			return r.array(func(first json.Token) error {
				one, err := r.shapeOf(first, nil)
				s.AllOf = append(s.AllOf, one)
				return err
			})
		}
		if d != nil {
			return r.declared(name, d)
		}
		return r.pass()
	})
}

// others reads the shape of other properties. A boolean says only whether there may be any.
func (r *schemaReader) others() (*shape, error) {
	first, err := r.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, r.rest(first)
	}
	return r.shapeOf(first, nil)
}

// declared reads a member that declares something.
func (r *schemaReader) declared(name string, d *declared) error {
	switch name {
	case "x-kubernetes-group-version-kind":
		return r.array(func(first json.Token) error {
			kind := schema.GroupVersionKind{}
			into := map[string]*string{"group": &kind.Group, "version": &kind.Version, "kind": &kind.Kind}
			err := r.texts(first, into)
			d.kinds = append(d.kinds, kind)
			return err
		})
	case "x-kubernetes-selectable-fields":
		return r.array(func(first json.Token) error {
			path := ""
			err := r.texts(first, map[string]*string{"fieldPath": &path})
			if path != "" {
				d.paths = append(d.paths, path)
			}
			return err
		})
	}
	return r.pass()
}
