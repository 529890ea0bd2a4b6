package kates

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/kates-go/kates/accumulator/stream"
	"github.com/kates-go/kates/internal/jsonform"
	"github.com/kates-go/kates/internal/patch"
)

// ErrSubresourceNotSupported is returned by the methods for subresources on client-go's bare fake
// client. The fake treats a subresource as the object itself: an eviction would replace the pod.
// It knows only the status.
var ErrSubresourceNotSupported = errors.New("this subresource is not supported by this (fake) client")

// GetSubresource reads a subresource of the object that the resource names ("scale", "status")
// into target. See [Client.Get].
func (c *Client) GetSubresource(ctx context.Context, resource any, subresource string, target any) error {
	err := c.checkTarget(target)
	if err == nil {
		err = c.checkSubresource(subresource, true)
	}
	var o *object
	if err == nil {
		if o, err = c.object(ctx, resource); err == nil {
			err = cmp.Or(o.named(), ctx.Err())
		}
	}
	if err != nil {
		return fmt.Errorf("get the %s of: %w", subresource, err)
	}
	got, err := c.core.get(ctx, o, subresource)
	if err != nil {
		return o.failed(operation{toGet, subresource}, err)
	}
	return jsonform.Fill(target, got)
}

// CreateSubresource posts a body to a subresource of the object that the resource names: an
// Eviction or a Binding of a pod, a TokenRequest of a service account. The target receives the
// answer, which may be a Status.
//
//	err := client.CreateSubresource(ctx, pod, "eviction", &policyv1.Eviction{}, nil, kates.GracePeriod(0))
//
// This holds for the write methods of subresources: the body is an object of any form, and is not
// modified. If it has no name or namespace, it gets those of the object. Once the method has
// returned nil, every later snapshot of this client shows the effect of the write on the object.
// The answer may not tell it, so each watch that may show the object asks the server before the
// method returns. [IfUID] and [IfResourceVersion] go into the body; for an Eviction they go into
// its deleteOptions, as [GracePeriod] and [Propagation] do. client-go's fake knows only the
// status, and not here: ErrSubresourceNotSupported. See [Client.Create] for what holds for every
// write.
func (c *Client) CreateSubresource(ctx context.Context, resource any, subresource string, body, target any, opts ...WriteOption) error {
	return c.writeSubresource(ctx, operation{toCreate, subresource}, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			err = w.preconditionBody(o, u)
		}
		if err != nil {
			return nil, nil, err
		}
		got, err = c.core.at(o).Create(ctx, u, w.create(), subresource)
		return got, nil, err
	})
}

// UpdateSubresource replaces a subresource of the object that the resource names (its scale, a
// pod's resize, …) by the body, and fills target with the result. If the body is nil, the
// resource is the body. If the body has a resource version that is not the newest, it fails with
// a conflict. What the server drops of a status is an error: [ErrDropped]. If the kind has no such
// subresource, the error says so, and is the server's: [IsNotFound]. See
// [Client.CreateSubresource].
func (c *Client) UpdateSubresource(ctx context.Context, resource any, subresource string, body, target any, opts ...WriteOption) error {
	if isNil(body) {
		body = resource
	}
	op := operation{toUpdate, subresource}
	return c.writeSubresource(ctx, op, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		u, err := c.body(o, body)
		if err == nil {
			err = w.precondition(o, u)
		}
		if err != nil {
			return nil, nil, err
		}
		got, err = c.core.at(o).Update(ctx, c.core.server.stored(op, o.resource, u), w.update(), subresource)
		return got, u, err
	})
}

// PatchSubresource changes a subresource of the object that the resource names, and fills target
// with the result.
//
//	err := client.PatchSubresource(ctx, deployment, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil)
//
// What the server drops of a status that the patch sets is an error, as far as the patch tells what
// it sets: [ErrDropped]. See [Client.UpdateSubresource] and [Client.CreateSubresource].
func (c *Client) PatchSubresource(ctx context.Context, resource any, subresource string, pt PatchType, data []byte, target any, opts ...WriteOption) error {
	op := operation{toPatch, subresource}
	return c.writeSubresource(ctx, op, resource, target, opts, func(o *object, w writeOptions) (got, wrote *Unstructured, err error) {
		if subresource == statusSubresource {
			wrote = &Unstructured{Object: patch.Written(pt, data)}
		}
		if pt == MergePatchType && wrote != nil && wrote.Object != nil {
			if stored := c.core.server.stored(op, o.resource, wrote); stored != wrote {
				if data, err = jsonform.Encode(stored.Object); err != nil {
					return nil, nil, err
				}
			}
		}
		got, err = c.patch(ctx, op, o, pt, data, w)
		return got, wrote, err
	})
}

func (c *Client) writeSubresource(ctx context.Context, op operation, resource any, target any, opts []WriteOption,
	send func(*object, writeOptions) (got, wrote *Unstructured, err error),
) error {
	if err := c.checkSubresource(op.subresource, op.verb != toCreate); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return c.send(ctx, op, resource, target, opts, func(o *object, w writeOptions) (reply, error) {
		got, wrote, err := send(o, w)
		if err != nil {
			return reply{}, err
		}
		sameKind := got.GroupVersionKind() == o.resource.Kind && got.GetName() == o.GetName()
		if sameKind && c.core.server.checkVersion(got) == nil {
			answer := c.answered(op, got)
			answer.wrote = wrote
			return answer, nil
		}
		return reply{
			object: got, Outcome: stream.Outcome{Unknown: true},
			unrelated: o.resource.Group == "" && o.resource.Resource == "serviceaccounts" && op.subresource == "token",
		}, nil
	})
}

// connections are the subresources that are no objects.
var connections = map[string]bool{"attach": true, "exec": true, "portforward": true, "proxy": true}

var subresourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// checkSubresource checks the name of a subresource before anything is sent. likeObject says that
// it is read or changed, and not created.
func (c *Client) checkSubresource(subresource string, likeObject bool) error {
	switch {
	case !subresourceName.MatchString(subresource):
		return fmt.Errorf("%q is not the name of a subresource, such as scale", subresource)
	case subresource == "log":
		return errors.New("log is a connection, not an object: use Client.PodLogs")
	case connections[subresource]:
		return fmt.Errorf("%s is a connection, not an object: use client-go", subresource)
	}
	return c.core.server.checkSubresource(subresource, likeObject)
}

// body returns what is sent to a subresource of o.
func (c *Client) body(o *object, value any) (*Unstructured, error) {
	u, err := jsonform.ToUnstructured(c.core.scheme, value)
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
