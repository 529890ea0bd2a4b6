package kates

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

// TestAPreconditionIsNeverGivenUpWithoutAWord: the server takes an empty UID, and an empty
// version or "0", for no condition at all. Of two conditions that contradict each other it would
// get only one. No object can meet such conditions, and nothing is sent.
func TestAPreconditionIsNeverGivenUpWithoutAWord(t *testing.T) {
	var writes atomic.Int32
	s := kindstest.New(t, false)
	s.Change(func() {
		s.Hook = func(r *http.Request) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
		}
	})
	c, err := NewClientFromRESTConfig(&rest.Config{Host: s.URL}, WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close()
	pod := &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	read := pod.DeepCopy()
	read.UID, read.ResourceVersion = "mine", "5"
	merge := []byte(`{"metadata":{"uid":"mine","resourceVersion":"5"},"spec":{}}`)
	uid := types.UID("mine")
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}
	for name, write := range map[string]func(context.Context, *Pod, WriteOption) error{
		"update": func(ctx context.Context, p *Pod, o WriteOption) error { return c.Update(ctx, p, nil, o) },
		"status": func(ctx context.Context, p *Pod, o WriteOption) error { return c.UpdateStatus(ctx, p, nil, o) },
		"apply":  func(ctx context.Context, p *Pod, o WriteOption) error { return c.Apply(ctx, p, nil, o) },
		"patch": func(ctx context.Context, p *Pod, o WriteOption) error {
			return c.Patch(ctx, p, MergePatchType, merge, nil, o)
		},
		"evict": func(ctx context.Context, p *Pod, o WriteOption) error {
			return c.CreateSubresource(ctx, p, "eviction", eviction, nil, o)
		},
		"update a subresource": func(ctx context.Context, p *Pod, o WriteOption) error {
			return c.UpdateSubresource(ctx, p, "resize", read, nil, o)
		},
		"delete": func(ctx context.Context, p *Pod, o WriteOption) error { return c.Delete(ctx, p, nil, o) },
	} {
		options := map[string]WriteOption{"no UID": IfUID(""), "no version": IfResourceVersion(""), "version 0": IfResourceVersion("0")}
		object := pod
		if name != "delete" { // it deletes the object of that name
			object, options["another UID"] = read, IfUID("another")
		}
		if name != "delete" && name != "evict" {
			options["another version"] = IfResourceVersion("7")
		}
		for what, option := range options {
			assert.True(t, IsConflict(write(t.Context(), object, option)), "%s: %s", name, what)
		}
	}
	assert.Zero(t, writes.Load())
}
