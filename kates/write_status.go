package kates

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/client/conditions"
	"github.com/kates-go/kates/internal/client/write"
)

// Condition is one aspect of an object's state, in its status.conditions.
type Condition = metav1.Condition

// SetCondition sets a condition in the status of an object, which it modifies, and reports
// whether that changed anything. The object is the caller's own: a pointer to a Go type with
// Status.Conditions of []metav1.Condition, an *[Unstructured], or a map[string]any. A condition
// of that type is changed in its place, others stay. The transition time changes only with the
// status: to the condition's own, or to now. A zero observedGeneration becomes the object's
// generation.
//
// A condition that was set for a newer generation of the object stays, without an error: a
// statement about an older one is out of date. It is an error, and nothing is modified, if the
// object cannot have such conditions, or if the API would reject the condition. The type is a
// qualified name, the status True, False or Unknown, and the reason a CamelCase word. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
// and KEP-1623.
func SetCondition(object any, condition Condition) (changed bool, err error) {
	return conditions.Set(object, condition)
}

// FindCondition returns a copy of an object's condition of that type. It is nil if the object has
// none, or none that can be read. The object is as for [SetCondition], but may be shared.
func FindCondition(object any, conditionType string) *Condition {
	return conditions.Find(object, conditionType)
}

// ErrDropped is the error of a write of a status of which the server has dropped a part. The error
// names the fields. The kind's schema does not have them, or a webhook has removed them. The rest
// of the status is stored, and later snapshots show it. No other try helps before the schema
// changes. It is also the error of a [Modify] that has changed a status which only [ModifyStatus]
// writes: the rest of that change is stored.
var ErrDropped = write.ErrDropped

// SetConditions writes conditions into the status of the object, as [SetCondition] does, through
// its status subresource: read, modify, write, and again after a conflict (see [ModifyStatus]).
// It starts from the newest version that the client knows, also that of a watch in a Go type or in
// a struct of the program's own, if that has all of these conditions' fields in status.conditions.
// Conditions of other types, and the rest of the status, stay as they are. If nothing changes,
// nothing is sent.
//
// A kind whose status has no conditions (Ingress, ResourceQuota) is an error: [ErrDropped].
//
// The conditions are about the object as given. A zero observedGeneration becomes its generation,
// though there may be a newer one by now. It stays zero where the kind's conditions have no such
// field in the client's scheme (those of Deployment, Node, Job, …). If the object has a UID,
// another object of its name is a
// conflict ([IsConflict]). It is not modified. See [Client.Create] for what holds for every
// write.
func (c *Client) SetConditions(ctx context.Context, object any, set []Condition, opts ...WriteOption) error {
	return c.writer().SetConditions(ctx, object, set, c.writeOptions(opts))
}

// ErrSubresourceNotSupported is returned by the methods for subresources on client-go's bare fake
// client. The fake treats a subresource as the object itself: an eviction would replace the pod.
// It knows only the status.
var ErrSubresourceNotSupported = write.ErrSubresourceNotSupported

// GetSubresource reads a subresource of the object that the resource names ("scale", "status")
// into target. See [Client.Get].
func (c *Client) GetSubresource(ctx context.Context, resource any, subresource string, target any) error {
	return c.writer().GetSubresource(ctx, resource, subresource, target)
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
	return c.writer().CreateSubresource(ctx, resource, subresource, body, target, c.writeOptions(opts))
}

// UpdateSubresource replaces a subresource of the object that the resource names (its scale, a
// pod's resize, …) by the body, and fills target with the result. If the body is nil, the
// resource is the body. If the body has a resource version that is not the newest, it fails with
// a conflict. What the server drops of a status is an error: [ErrDropped]. If the kind has no such
// subresource, the error says so, and is the server's: [IsNotFound]. See
// [Client.CreateSubresource].
func (c *Client) UpdateSubresource(ctx context.Context, resource any, subresource string, body, target any, opts ...WriteOption) error {
	return c.writer().UpdateSubresource(ctx, resource, subresource, body, target, c.writeOptions(opts))
}

// PatchSubresource changes a subresource of the object that the resource names, and fills target
// with the result.
//
//	err := client.PatchSubresource(ctx, deployment, "scale", kates.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil)
//
// What the server drops of a status that the patch sets is an error, as far as the patch tells
// what it sets: [ErrDropped]. See [Client.UpdateSubresource] and [Client.CreateSubresource].
func (c *Client) PatchSubresource(ctx context.Context, resource any, subresource string, pt PatchType, data []byte, target any, opts ...WriteOption) error {
	return c.writer().PatchSubresource(ctx, resource, subresource, pt, data, target, c.writeOptions(opts))
}
