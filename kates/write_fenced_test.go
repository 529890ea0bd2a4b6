package kates_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/loops/fence"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestNoWriteOfAnyKindIsSentAfterItsLeaseIsOver(t *testing.T) {
	for name, write := range fencedWrites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, before := newFencedWorld(t), someLease{}
			there := w.state(t)
			before.over.Store(true)
			for how, opts := range map[string][]kates.WriteOption{"bound": nil, "not bound": {kates.Unfenced()}} {
				err := write.do(context.WithoutCancel(fence.With(t.Context(), before.held)), w, opts...)
				assert.ErrorIs(t, err, errLeaseOver, how)
			}
			assert.Zero(t, w.wire.writes.Load(), "the lease was over before the call")
			assert.Equal(t, there, w.state(t))

			var meanwhile someLease
			ctx := fence.With(t.Context(), meanwhile.held)
			if name != "ModifyStatus/as it is" {
				w.wire.before = func() { meanwhile.over.Store(true) }
				require.ErrorIs(t, write.do(ctx, w), errLeaseOver, "the request was on its way")
				assert.Equal(t, int32(1), w.wire.writes.Load(), "and there is no other")
				assert.Equal(t, there, w.state(t))
			}

			w.wire.before = nil
			require.NoError(t, write.do(fence.With(t.Context(), new(someLease).held), w))
			assert.Equal(t, name == "ModifyStatus/as it is", fmt.Sprint(there) == fmt.Sprint(w.state(t)), "a lease that is held")
		})
	}
}

// TestAWriteThatIsOvertakenUnderALeaseIsAConflict: what a former leader has under way must not
// overwrite what the next one has written.
func TestAWriteThatIsOvertakenUnderALeaseIsAConflict(t *testing.T) {
	for name, write := range fencedWrites {
		if !write.bound {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFencedWorld(t)
			ctx := fence.With(t.Context(), new(someLease).held)
			w.wire.before = func() { w.touch(t) }
			err := write.do(ctx, w)
			assert.True(t, kates.IsConflict(err), "%v", err)
			assert.Equal(t, int32(1), w.wire.writes.Load())
			require.NoError(t, write.do(ctx, w, kates.Unfenced()))
		})
	}
}

// TestNoWriteIsSentByAFakeAfterItsLeaseIsOver: a dynamic client has no transport of ours, so the
// methods themselves have to look.
func TestNoWriteIsSentByAFakeAfterItsLeaseIsOver(t *testing.T) {
	unknown := []string{"Apply", "CreateSubresource", "UpdateSubresource"} // to a fake
	for name, write := range fencedWrites {
		if slices.Contains(unknown, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := metav1.ObjectMeta{Namespace: "default", Name: "x"}
			w := &fencedWorld{
				x: &kates.ConfigMap{ObjectMeta: in}, d: &appsv1.Deployment{ObjectMeta: in}, p: &corev1.Pod{ObjectMeta: in},
				set: kates.OwnedSet{Owner: inNamespace("default", "root"), SetName: "set"},
			}
			w.x.Finalizers = []string{"example.com/there"}
			old, shared := inNamespace("default", "old"), inNamespace("default", "shared")
			mine := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "root"}
			for _, o := range []*kates.ConfigMap{old, shared} {
				o.Labels, o.OwnerReferences = map[string]string{kates.OwnedSetLabel: "set"}, []metav1.OwnerReference{mine}
			}
			shared.OwnerReferences = append(shared.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "x"})
			fake := katestest.New(t, katestest.WithObjects(w.x, w.d, w.p, old, shared, inNamespace("default", "root")))
			w.client, w.other = fake.Client, fake.Client
			writes := func() []string {
				return slices.DeleteFunc(requests(fake), func(r string) bool {
					return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ")
				})
			}
			writes()
			var l someLease
			l.over.Store(true)
			assert.ErrorIs(t, write.do(fence.With(t.Context(), l.held), w), errLeaseOver)
			assert.Empty(t, writes())
			require.NoError(t, write.do(fence.With(t.Context(), new(someLease).held), w))
			assert.Equal(t, name == "ModifyStatus/as it is", len(writes()) == 0, "a lease that is held")
		})
	}
}

// TestWhatAFunctionOfTheCallerDoesWhileTheLeaseEndsIsNotSent: the call began under the lease.
func TestWhatAFunctionOfTheCallerDoesWhileTheLeaseEndsIsNotSent(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c *kates.Client, x *kates.ConfigMap, end func()) error{
		"Modify": func(ctx context.Context, c *kates.Client, x *kates.ConfigMap, end func()) error {
			_, err := kates.Modify(ctx, c, x, func(x *kates.ConfigMap) error { end(); return label(x) })
			return err
		},
		"ModifyStatus": func(ctx context.Context, c *kates.Client, _ *kates.ConfigMap, end func()) error {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
			_, err := kates.ModifyStatus(ctx, c, d, func(d *appsv1.Deployment) error { end(); available(&d.Status.Conditions); return nil })
			return err
		},
		"UnderFinalizer": func(ctx context.Context, c *kates.Client, x *kates.ConfigMap, end func()) error {
			return kates.UnderFinalizer(ctx, c, x, "example.com/there",
				func(context.Context, *kates.ConfigMap) error { return errors.New("it is leaving") },
				func(context.Context, *kates.ConfigMap) error { end(); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, now := bareMap(), metav1.Now()
			x.Finalizers, x.DeletionTimestamp = []string{"example.com/there"}, &now
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
			fake := katestest.New(t, katestest.WithObjects(x, d))
			var l someLease
			err := write(fence.With(t.Context(), l.held), fake.Client, x, func() { l.over.Store(true) })
			require.ErrorIs(t, err, errLeaseOver)
			for _, r := range requests(fake) {
				assert.True(t, strings.HasPrefix(r, "get "), r)
			}
		})
	}
}

// TestEveryFunctionThatWritesIsTriedAfterItsLeaseIsOver: a new one has to be among fencedWrites.
func TestEveryFunctionThatWritesIsTriedAfterItsLeaseIsOver(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var declared, tried []string
	for name := range fencedWrites {
		name, _, _ = strings.Cut(name, "/")
		tried = append(tried, name)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Name.IsExported() && takesWriteOptions(f) {
				declared = append(declared, f.Name.Name)
			}
		}
	}
	slices.Sort(declared)
	slices.Sort(tried)
	assert.Equal(t, declared, slices.Compact(tried))
}

func takesWriteOptions(f *ast.FuncDecl) bool {
	all := f.Type.Params.List
	if len(all) == 0 {
		return false
	}
	rest, variadic := all[len(all)-1].Type.(*ast.Ellipsis)
	if !variadic {
		return false
	}
	of, named := rest.Elt.(*ast.Ident)
	return named && of.Name == "WriteOption"
}

// TestAStatusThatIsThereIsRefusedAfterItsLeaseIsOver: it is compared with what a watch of Go types
// has, and no request is made.
func TestAStatusThatIsThereIsRefusedAfterItsLeaseIsOver(t *testing.T) {
	w := newFencedWorld(t)
	r, err := kates.NewLister[*appsv1.Deployment](t.Context(), w.client, kates.Query{})
	require.NoError(t, err)
	defer r.Close()
	var l someLease
	ctx := fence.With(t.Context(), l.held)
	_, err = kates.ModifyStatus(ctx, w.client, w.d, func(*appsv1.Deployment) error { return nil })
	require.NoError(t, err)
	l.over.Store(true)
	_, err = kates.ModifyStatus(ctx, w.client, w.d, func(*appsv1.Deployment) error { return nil })
	require.ErrorIs(t, err, errLeaseOver)
	assert.Zero(t, w.wire.writes.Load())
}

// TestAWriteUnderALeaseIsBasedOnWhatItsCallHasSeenOrWritten: the client may know a newer version by
// now, which the next leader may have written.
func TestAWriteUnderALeaseIsBasedOnWhatItsCallHasSeenOrWritten(t *testing.T) {
	type everything struct {
		Maps        []*kates.ConfigMap   `kates:"configmaps"`
		Deployments []*appsv1.Deployment `kates:"deployments"`
		Pods        []*corev1.Pod        `kates:"pods"`
	}
	w := newFencedWorld(t)
	runs, stop := context.WithCancel(fence.With(t.Context(), new(someLease).held))
	defer stop()
	require.NoError(t, kates.Run(runs, w.client, func(ctx context.Context, _ *everything) error {
		defer stop()
		w.touch(t)
		require.NoError(t, w.client.Sync(ctx))
		for name, write := range fencedWrites {
			if write.bound {
				assert.True(t, kates.IsConflict(write.do(ctx, w)), name)
			}
		}
		assert.Zero(t, w.wire.writes.Load(), "the client itself sees it")
		require.NoError(t, fencedWrites["Patch"].do(ctx, w, kates.Unfenced()))
		require.NoError(t, fencedWrites["Update"].do(ctx, w), "it has written that version itself")
		require.NoError(t, fencedWrites["Patch"].do(ctx, w), "and this one")
		assert.Equal(t, int32(3), w.wire.writes.Load())
		return nil
	}))
}
