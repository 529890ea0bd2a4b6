package validate

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// definition is the definition of a custom kind, as the cluster has it now. If there is none, the
// kind is built in, or another server has it.
type definition struct {
	name   string
	opened chan struct{} // closed when lister and err are set
	lister *kates.Lister[*unstructured.Unstructured]
	err    error

	mu       sync.Mutex
	of       *unstructured.Unstructured // what was compiled
	compiled map[string]result          // by version
}

type result struct {
	schema *versionSchema
	err    error
}

// definition returns the definition of a resource. The first call opens its watch.
func (v *Validator) definition(
	ctx context.Context, resource schema.GroupResource,
) (*definition, error) {
	for {
		d, first, err := v.enter(resource)
		if err != nil {
			return nil, err
		}
		if first {
			d.lister, d.err = kates.NewLister[*unstructured.Unstructured](ctx, v.client, kates.Query{
				Kind: definitions, FieldSelector: "metadata.name=" + d.name,
			})
			if d.err != nil {
				v.forget(resource, d)
			}
			close(d.opened)
			return d, d.err
		}
		select {
		case <-d.opened:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if d.err == nil {
			return d, nil
		}
		// Another call has failed, for a reason of its own perhaps: its context.
	}
}

// enter returns the definition of a resource, and whether the caller is the first, who opens it.
func (v *Validator) enter(
	resource schema.GroupResource,
) (d *definition, first bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, false, kates.ErrClosed
	}
	if d = v.live[resource]; d == nil {
		d, first = &definition{name: resource.String(), opened: make(chan struct{})}, true
		v.live[resource] = d
	}
	return d, first, nil
}

func (v *Validator) forget(resource schema.GroupResource, d *definition) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live[resource] == d {
		delete(v.live, resource)
	}
}

func (d *definition) close() {
	if d.lister != nil {
		d.lister.Close()
	}
}

// schema returns the schema of a version, compiled once for each version of the definition.
func (d *definition) schema(version string) (*versionSchema, error) {
	u, err := d.lister.Get("", d.name)
	if kates.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != u {
		d.of, d.compiled = u, map[string]result{}
	}
	got, ok := d.compiled[version]
	if !ok {
		crd, err := internal(u)
		if got.err = err; err == nil {
			got.schema, got.err = compile(crd, version)
		}
		d.compiled[version] = got
	}
	return got.schema, got.err
}
