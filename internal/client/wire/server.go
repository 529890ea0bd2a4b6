package wire

import (
	"context"
	"io"
	"net/http"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/jsonform"
	"github.com/kates-go/kates/internal/client/connection"
	"github.com/kates-go/kates/internal/client/wire/ordered"
	"github.com/kates-go/kates/internal/client/wire/tree"
	"github.com/kates-go/kates/internal/engine/source"
	objects "github.com/kates-go/kates/internal/object"
)

// Server sends requests to an API server over REST.
type Server struct {
	// Plain decodes untyped objects, Metadata decodes metadata alone.
	Plain, Metadata rest.Interface
	// Scheme knows the Go types of typed sources.
	Scheme *runtime.Scheme
	// ManagedFields says that typed objects keep them.
	ManagedFields bool
	// Applied takes what typed objects without managedFields say about applies. It may be nil.
	Applied *Applied
	// StreamTyped says that the initial lists of typed sources are streamed.
	StreamTyped bool
	// MaxObjectBytes bounds each object that is listed or watched.
	MaxObjectBytes int64
	// Helpers decode the items of lists side by side. Nil: each is decoded where it is read.
	Helpers *ordered.Pool
}

// NewServer returns what sends requests over a link. The caller fills in its settings.
func NewServer(l *connection.Link) *Server {
	return &Server{Plain: l.Plain(), Metadata: l.Metadata(), Helpers: new(ordered.Pool)}
}

// Source lists and watches a resource. A Go type that the scheme does not know is whole objects.
func (s *Server) Source(r objects.Resource, namespace string, form objects.Form) source.Source {
	whole := &restSource{
		client: s.Plain, resource: r, namespace: namespace, form: form,
		maxObjectBytes: s.MaxObjectBytes, lists: newLists(r.Kind), helpers: s.Helpers,
		only: onlyOf(form, nil), trees: new(tree.Table), originals: originals{kind: r.Kind},
	}
	short := &restSource{
		client: s.Metadata, resource: r, namespace: namespace,
		maxObjectBytes: s.MaxObjectBytes, lists: newLists(shortKind), helpers: s.Helpers,
		originals: originals{kind: r.Kind, typ: reflect.TypeFor[metav1.PartialObjectMetadata]()},
	}
	if p, ok := form.Projection(); ok {
		rest := *whole
		rest.client = s.Metadata
		d := newProjecting(r, p, s.Scheme)
		rest.originals = d.originals
		return &typedSource{rest: &rest, decoder: d, streamed: s.StreamTyped}
	}
	switch base, _ := form.Parts(); base {
	case objects.Metadata:
		return &metadataSource{rest: short, whole: whole}
	case objects.Typed:
		if typ, ok := TypeOf(s.Scheme, r.Kind); ok {
			rest := *whole
			rest.client = s.Metadata
			d := newDecoder(r, typ, s.ManagedFields)
			rest.originals = d.originals
			if d.only = onlyOf(form, typ); d.only == nil && !d.keep {
				d.applied = s.Applied
			}
			return &typedSource{rest: &rest, decoder: d, streamed: s.StreamTyped}
		}
	}
	return whole
}

// TypeOf is the Go type of a kind's objects, if objects can be streamed in that type.
func TypeOf(scheme *runtime.Scheme, kind schema.GroupVersionKind) (reflect.Type, bool) {
	o, err := scheme.New(kind)
	if err != nil {
		return nil, false
	}
	_, ok := o.(objects.Object)
	return reflect.TypeOf(o).Elem(), ok
}

// Delete deletes an object and reads the body of the answer.
func (s *Server) Delete(
	ctx context.Context, at Address, o metav1.DeleteOptions,
) (d Deletion, err error) {
	body, err := jsonform.Encode(&o)
	if err != nil {
		return d, err
	}
	raw, err := answer(s.Plain.Delete().AbsPath(at.path()...).
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return d, err
	}
	got := &unstructured.Unstructured{}
	if err := jsonform.Decode(raw, &got.Object); err != nil {
		return Deletion{Unknown: true}, nil // the object is deleted, but in which way?
	}
	if got.GetKind() == "Status" && got.GetAPIVersion() == "v1" {
		uid, _, _ := unstructured.NestedString(got.Object, "details", "uid")
		return Deletion{UID: types.UID(uid), Unknown: uid == ""}, nil
	}
	return Deletion{Object: got}, nil
}

// Apply sends a server-side apply. The status of the answer says whether the object was created.
func (s *Server) Apply(
	ctx context.Context, at Address, data []byte, o metav1.PatchOptions,
) (got *unstructured.Unstructured, created bool, err error) {
	request := s.Plain.Patch(types.ApplyPatchType).AbsPath(at.path()...).
		SetHeader("Accept", "application/json").
		SpecificallyVersionedParams(&o, optionsCodec, optionsVersion).Body(data)
	status := 0
	raw, err := answer(request.Do(ctx).StatusCode(&status))
	if err != nil {
		return nil, false, err
	}
	got = &unstructured.Unstructured{}
	return got, status == http.StatusCreated, jsonform.Decode(raw, &got.Object)
}

// Log opens the log of a pod. The caller closes it. Like other requests for streams, it is not
// retried here.
func (s *Server) Log(
	ctx context.Context, pod types.NamespacedName, o *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	in := path(pods, pod.Namespace)
	return s.Plain.Get().MaxRetries(0).AbsPath(append(in, pod.Name, "log")...).
		SpecificallyVersionedParams(o, scheme.ParameterCodec, optionsVersion).Stream(ctx)
}

var pods = objects.Resource{
	GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Namespaced: true,
}

// answer is the body of an answer. The error is that of Error, since Raw's lacks the server's
// message.
func answer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
