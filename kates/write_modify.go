package kates

import (
	"context"

	"github.com/kates-go/kates/internal/client/write"
)

// Modify changes an object with a function: read, change, write, and again if another writer was
// faster. The resource, an object of any form, names the object: kind, namespace and name. T is
// the form in which change sees it: a Go type of that kind and version (another is an error),
// [Unstructured], map[string]any, or any struct with the right JSON.
//
//	_, err := kates.Modify(ctx, client, deployment, func(d *appsv1.Deployment) error {
//	    d.Spec.Replicas = &n
//	    return nil
//	})
//
// It starts from the newest version that the client knows: the answer to an own write, or what a
// watch has brought. The watch holds it untyped and whole, or in the very form T, also if T is a
// struct of the program's own (then without managedFields, unless [WithManagedFields]). If the
// client watches no such object, Modify first reads it from the server; the fake client always
// does. An object that does not exist is [IsNotFound]; see [Client.Upsert].
//
// The object that change gets is its own, to write to and to keep. Change may be called several
// times, each time with a newer object or with one that was read, so it decides by its argument.
// It runs without any lock held. Its error ends Modify and is returned as it is; then nothing has
// been written.
//
// Modify sends a JSON merge patch (RFC 7396) of what change altered, on the condition that it is
// still the same object (UID) at the same version. So fields that T does not know stay. This
// holds for the elements of a list that is sent, too: an unaltered element stays as the server
// has it, and an altered one keeps the fields that T does not know. An element is found by its
// key (name, type, …), or else by its place.
//
// A watch may know no more of the object than T does. If then a list with remaining elements was
// altered, Modify sends a JSON patch (RFC 6902), which names what was altered in the elements. If
// T cannot tell what the patch would meet (an object that is either empty or absent), or if the
// server refuses the patch, Modify reads the object and calls change again. As a rule, a write of
// a status with conditions is one request. Modify never starts from objects that a watch holds
// shortened.
//
// If change alters nothing, nothing is sent, and the known object is returned. With [DryRun],
// [IfUID] or [IfResourceVersion] the server is asked for the object first. An object's
// apiVersion, kind, name, namespace and UID cannot be changed: that is an error. Fields that only
// the server writes (resourceVersion, managedFields, …) are left out. The server ignores changes
// of a status that is a subresource. If that leaves nothing of what change has altered in the
// status, the error is [ErrDropped], and the rest is stored. See [ModifyStatus].
//
// After a conflict Modify waits a little, reads the object from the server, since watches may
// lag, and calls change again. After some twenty tries it returns the conflict ([IsConflict]).
// [IfUID] and [IfResourceVersion] bind it to one object and to one version; then a conflict is
// final. A [DryRun] does all of this but store the result.
//
// It returns the server's answer, which is the caller's own. See [Client.Create] for what holds
// for every write.
func Modify[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return write.Modify(ctx, c.writer(), resource, change, c.writeOptions(opts))
}

// ModifyStatus is [Modify] for the status of an object, through its status subresource. It sends
// only the status. It is an error if change alters anything else, since the server would ignore
// it; then nothing is sent. A kind without that subresource is an error that says so. It is not
// [IsNotFound], which is what the server answers.
func ModifyStatus[T any](ctx context.Context, c *Client, resource any, change func(*T) error, opts ...WriteOption) (*T, error) {
	return write.ModifyStatus(ctx, c.writer(), resource, change, c.writeOptions(opts))
}
