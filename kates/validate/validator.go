package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kates-go/kates/kates"
)

// Validator validates custom objects. It is safe for concurrent use.
type Validator struct {
	client *kates.Client // nil: only static definitions
	static map[schema.GroupVersionKind]*versionSchema

	mu     sync.Mutex
	live   map[schema.GroupResource]*definition
	closed bool
}

// NewValidator returns a validator that takes the definitions of custom kinds from the static ones
// (CustomResourceDefinitions of any form and version), else from the client's cluster. The client
// may be nil if there are static definitions. It sends no request.
func NewValidator(client *kates.Client, static []kates.Object) (*Validator, error) {
	if client == nil && len(static) == 0 {
		return nil, errors.New("a validator needs a client or static definitions")
	}
	v := &Validator{
		client: client, static: map[schema.GroupVersionKind]*versionSchema{},
		live: map[schema.GroupResource]*definition{},
	}
	for i, o := range static {
		if err := v.add(o); err != nil {
			return nil, fmt.Errorf("static definition %d: %w", i, err)
		}
	}
	return v, nil
}

// add compiles all versions of a static definition.
func (v *Validator) add(o kates.Object) error {
	if o == nil {
		return errors.New("it is nil")
	}
	u, err := kates.NewUnstructuredFromObject(o)
	if err != nil {
		return err
	}
	crd, err := internal(u)
	if err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		compiled, err := compile(crd, version.Name)
		if err != nil {
			return err
		}
		v.static[kindOf(crd, version.Name)] = compiled
	}
	return nil
}

// Validate validates an object of any form that has an apiVersion and a kind: a Go type,
// *kates.Unstructured, map[string]any, any struct with the right JSON. The object is not modified.
// An object of a kind without a definition is valid, as that of a kind that is built into the
// server. With a client, a kind that the cluster does not know is an error. A version that the
// definition does not serve is an error.
//
// The error of an invalid object wraps an Aggregate (k8s.io/apimachinery/pkg/util/errors) of a
// *field.Error for each thing that is wrong, in the order of their text. If a field is missing or
// of a wrong type, the rules are not evaluated, and one of the errors says so.
//
// For the first object of a kind, Validate reads the definition and watches it from then on, until
// Close or the client's Close. So every object is validated by the newest schema. It needs the
// rights to list and watch customresourcedefinitions of that name. Later calls send no request.
func (v *Validator) Validate(ctx context.Context, object any) error {
	u, err := untyped(object)
	if err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	what := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
	s, err := v.schemaOf(ctx, u.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("validate %s %q: %w", u.GetKind(), what, err)
	}
	if errs := s.validate(ctx, u.Object); len(errs) > 0 {
		return fmt.Errorf("%s %q is invalid: %w", u.GetKind(), what, errs.ToAggregate())
	}
	return nil
}

// untyped copies an object.
func untyped(object any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	var err error
	switch o := object.(type) {
	case nil:
		return nil, errors.New("the object is nil")
	case kates.Object:
		u, err = kates.NewUnstructuredFromObject(o)
	default:
		var encoded []byte
		if encoded, err = json.Marshal(object); err == nil {
			err = json.Unmarshal(encoded, &u.Object)
		}
	}
	if err == nil && (u.GetKind() == "" || u.GetAPIVersion() == "") {
		err = errors.New("the object has no apiVersion or no kind")
	}
	return u, err
}

// schemaOf returns the schema of a kind, nil if it has none.
func (v *Validator) schemaOf(
	ctx context.Context, kind schema.GroupVersionKind,
) (*versionSchema, error) {
	if s, ok := v.static[kind]; ok {
		return s, nil
	}
	if v.client == nil && v.defines(kind.GroupKind()) {
		return nil, fmt.Errorf("no static definition of %s serves version %s", kind.GroupKind(), kind.Version)
	}
	if v.client == nil {
		return nil, nil
	}
	mapper := meta.ToRESTMapperWithContext(v.client.RESTMapper())
	mapping, err := mapper.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
	switch {
	case err != nil:
		return nil, err
	case !strings.Contains(kind.Group, "."):
		return nil, nil // the server takes no definition of such a group
	}
	d, err := v.definition(ctx, mapping.Resource.GroupResource())
	if err != nil {
		return nil, err
	}
	return d.schema(kind.Version)
}

// defines reports whether a static definition has some version of a kind.
func (v *Validator) defines(kind schema.GroupKind) bool {
	for known := range v.static {
		if known.GroupKind() == kind {
			return true
		}
	}
	return false
}

// Close ends the watches of definitions.
func (v *Validator) Close() {
	v.mu.Lock()
	v.closed = true
	live := v.live
	v.live = nil
	v.mu.Unlock()
	for _, d := range live {
		<-d.opened
		d.close()
	}
}
