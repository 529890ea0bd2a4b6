package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/core"
	"github.com/kates-go/kates/internal/client/patch"
	"github.com/kates-go/kates/internal/engine/intake"
)

// ErrSubresourceNotSupported is the error of a subresource on a fake. Package kates exports it.
var ErrSubresourceNotSupported = errors.New("this subresource is not supported by this (fake) client")

// GetSubresource reads a subresource of the object that the resource names into target.
func (c Writer) GetSubresource(ctx context.Context, resource any, subresource string, target any) error {
	var o *core.Subject
	err := cmp.Or(c.CheckTarget(target), c.checkSubresource(subresource, true))
	if err == nil {
		if o, err = c.SubjectOf(ctx, resource); err == nil {
			err = cmp.Or(o.CheckName(), ctx.Err())
		}
	}
	if err != nil {
		return fmt.Errorf("get the %s of: %w", subresource, err)
	}
	got, err := c.Get(ctx, o, subresource)
	if err != nil {
		return o.Failed(Operation{toGet, subresource}, err)
	}
	return jsonform.Fill(target, got)
}

// CreateSubresource posts a body to a subresource of the object that the resource names.
func (c Writer) CreateSubresource(ctx context.Context, resource any, subresource string, body, target any, w Options) error {
	return c.writeSubresource(ctx, Operation{toCreate, subresource}, resource, target, w, func(o *core.Subject, w Options) (got, wrote *unstructured.Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			err = w.preconditionBody(o, u)
		}
		if err == nil {
			got, err = c.At(o).Create(ctx, u, w.ForCreate(), subresource)
		}
		return got, nil, err
	})
}

// UpdateSubresource replaces a subresource of the object that the resource names by the body.
func (c Writer) UpdateSubresource(ctx context.Context, resource any, subresource string, body, target any, w Options) error {
	if isNil(body) {
		body = resource
	} else if u, err := jsonform.ToUnstructured(c.Scheme, body); err == nil { // else c.Body says why
		w.body = u
	}
	op := Operation{toUpdate, subresource}
	return c.writeSubresource(ctx, op, resource, target, w, func(o *core.Subject, w Options) (got, wrote *unstructured.Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			got, err = c.update(ctx, op, o, u, w)
		}
		return got, u, err
	})
}

// PatchSubresource changes a subresource of the object that the resource names.
func (c Writer) PatchSubresource(ctx context.Context, resource any, subresource string, pt types.PatchType, data []byte, target any, w Options) error {
	op := Operation{toPatch, subresource}
	return c.writeSubresource(ctx, op, resource, target, w, func(o *core.Subject, w Options) (got, wrote *unstructured.Unstructured, err error) {
		if subresource == statusSubresource {
			wrote = &unstructured.Unstructured{Object: patch.Written(pt, data)}
		}
		if pt == types.MergePatchType && wrote != nil && wrote.Object != nil {
			if stored := c.stored(op, o.Resource, wrote); stored != wrote {
				if data, err = jsonform.Encode(stored.Object); err != nil {
					return nil, nil, err
				}
			}
		}
		got, err = c.patch(ctx, op, o, pt, data, w)
		return got, wrote, err
	})
}

func (c Writer) writeSubresource(ctx context.Context, op Operation, resource any, target any, w Options,
	send func(*core.Subject, Options) (got, wrote *unstructured.Unstructured, err error),
) error {
	if err := c.checkSubresource(op.subresource, op.verb != toCreate); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return c.send(ctx, op, resource, target, w, func(o *core.Subject, w Options) (Reply, error) {
		got, wrote, err := send(o, w)
		if err != nil {
			return Reply{}, err
		}
		sameKind := got.GroupVersionKind() == o.Resource.Kind && got.GetName() == o.GetName()
		if sameKind && c.checkVersion(got) == nil {
			answer := c.Answered(op, got)
			answer.wrote = wrote
			return answer, nil
		}
		return Reply{
			Got: got, Outcome: intake.Outcome{Unknown: true},
			unrelated: o.Resource.Group == "" && o.Resource.Resource == "serviceaccounts" && op.subresource == "token",
		}, nil
	})
}

// connections are the subresources that are no objects.
var connections = map[string]bool{"attach": true, "exec": true, "portforward": true, "proxy": true}

var subresourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// checkSubresource checks the name of a subresource before anything is sent. likeObject says that
// it is read or changed, and not created.
func (c Writer) checkSubresource(subresource string, likeObject bool) error {
	switch {
	case !subresourceName.MatchString(subresource):
		return fmt.Errorf("%q is not the name of a subresource, such as scale", subresource)
	case subresource == "log":
		return errors.New("log is a connection, not an object: use Client.PodLogs")
	case connections[subresource]:
		return fmt.Errorf("%s is a connection, not an object: use client-go", subresource)
	}
	// A fake takes a subresource for the object itself, which is right only if the status is read
	// or changed.
	if c.Fake != nil && (!likeObject || subresource != statusSubresource) {
		return ErrSubresourceNotSupported
	}
	return nil
}

// body returns what is sent to a subresource of o.
func (c Writer) body(o *core.Subject, value any) (*unstructured.Unstructured, error) {
	u, err := jsonform.ToUnstructured(c.Scheme, value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the body: %w", err)
	case u.GetKind() == "" || u.GetAPIVersion() == "":
		return nil, errors.New("the body has no apiVersion or kind")
	case u.GetName() != "" && u.GetName() != o.GetName(), u.GetNamespace() != "" && u.GetNamespace() != o.GetNamespace():
		return nil, fmt.Errorf("the body is of another object: %s", jsonform.Describe(u))
	}
	u.SetName(o.GetName())
	if ns := o.GetNamespace(); ns != "" {
		u.SetNamespace(ns)
	}
	return u, nil
}
