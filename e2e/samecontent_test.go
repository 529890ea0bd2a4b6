package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// bothForms is a snapshot of one kind in two forms.
type bothForms struct {
	Typed   []*typedGadget
	Untyped []*kates.Unstructured
	Deltas  []*kates.Delta
}

// looks watches a gadget kind in both forms, and replays the deltas.
type looks struct {
	*testing.T
	g       *gadget
	version string
	ns      string
	faults  *katestest.Faults
	watch   *kates.Snapshots[bothForms]
	snap    bothForms
	shown   map[string]string // versions by query and name, by the deltas
}

// look begins to watch a version of a kind in a cluster.
func (g *gadget) look(version, ns string, config *rest.Config) *looks {
	g.t.Helper()
	l := &looks{T: g.t, g: g, version: version, ns: ns, faults: katestest.NewFaults(g.t, 0), shown: map[string]string{}}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: g.group, Version: version, Kind: "Gadget"}, &typedGadget{})
	through := rest.CopyConfig(config)
	through.Wrap(l.faults.Wrap)
	c, err := tapped(kates.NewClientFromRESTConfig(through, kates.WithInterval(0), kates.WithScheme(scheme)))
	require.NoError(g.t, err)
	g.t.Cleanup(c.Close)
	kind := strings.Replace(g.kind, ".", "."+version+".", 1)
	l.watch, err = kates.Watch[bothForms](g.t.Context(), c,
		kates.Query{Name: "Typed", Namespace: ns}, kates.Query{Name: "Untyped", Kind: kind, Namespace: ns})
	require.NoError(g.t, err)
	return l
}

// update reads a snapshot, and checks that its deltas give it (G7).
func (l *looks) update() {
	l.Helper()
	changed, err := l.watch.Update(l.Context(), &l.snap)
	require.NoError(l, err)
	if !changed {
		return
	}
	for _, d := range l.snap.Deltas {
		key := d.Query + "/" + d.Name
		_, had := l.shown[key]
		require.Equal(l, d.DeltaType != kates.ObjectAdd, had, "%s of %s", d.DeltaType, key)
		if l.shown[key] = d.ResourceVersion; d.DeltaType == kates.ObjectDelete {
			delete(l.shown, key)
		}
	}
	now := map[string]string{}
	for _, o := range l.snap.Typed {
		now["Typed/"+o.Name] = o.ResourceVersion
	}
	for _, o := range l.snap.Untyped {
		now["Untyped/"+o.GetName()] = o.GetResourceVersion()
	}
	require.Equal(l, now, l.shown, "the deltas give the snapshot")
}

// sizes returns the sizes that the snapshot has, and those that the server lists now: 0 is none.
func (l *looks) sizes() (shown, served string) {
	l.Helper()
	for _, o := range l.snap.Typed {
		shown += fmt.Sprint(o.Name, "=", o.Size, " ")
	}
	shown += "| "
	for _, o := range l.snap.Untyped {
		shown += o.GetName() + "=" + sizeOf(*o) + " "
	}
	list, err := l.g.others().Resource(l.g.resource(l.version)).Namespace(l.ns).List(l.Context(), metav1.ListOptions{})
	require.NoError(l, err)
	var all string
	for _, o := range list.Items {
		all += o.GetName() + "=" + sizeOf(o) + " "
	}
	return shown, all + "| " + all
}

func sizeOf(o kates.Unstructured) string {
	if size, has := o.Object["size"]; has {
		return fmt.Sprint(size)
	}
	return "0"
}

// shows waits until the snapshot has a size of each object, and the server lists it so.
func (l *looks) shows(size int, names ...string) {
	l.Helper()
	var one string
	for _, name := range names {
		one += fmt.Sprint(name, "=", size, " ")
	}
	l.showsAs(one)
}

func (l *looks) showsAs(one string) {
	l.Helper()
	deadline := time.After(patience)
	for want := one + "| " + one; ; {
		l.update()
		shown, served := l.sizes()
		if shown == want && served == want {
			return
		}
		select {
		case <-l.watch.Changed():
		case <-time.After(100 * time.Millisecond): // the server may come later than the snapshot
		case <-deadline:
			require.Fail(l, "it does not come to be", "wanted %q, shown %q, served %q\n%s", want, shown, served, l.watch.Status())
		}
	}
}

// versionsOf returns the versions of what is shown.
func versionsOf(snap bothForms) (all []string) {
	for _, o := range snap.Typed {
		all = append(all, o.Name+"@"+o.ResourceVersion)
	}
	return all
}

// relist ends both watches. They cannot be resumed. Each begins anew with a list.
func (l *looks) relist() {
	l.Helper()
	resumes := katestest.Match{Resource: "gadgets", Where: func(r katestest.Request) bool { return r.Verb == "watch" && !r.StreamedList() }}
	before := l.restarts()
	rule := l.faults.On(resumes).Status(http.StatusGone, metav1.StatusReasonExpired, 0)
	all := katestest.Match{Resource: "gadgets", Verb: "watch"}
	l.faults.Now(all).Cut(0)
	require.Eventually(l, func() bool {
		now := l.restarts()
		if now[0] > before[0] && now[1] > before[1] {
			return true
		}
		l.faults.Now(all).Cut(0) // one that was asked for before the rule, and open after the cut
		return false
	}, patience, 200*time.Millisecond)
	rule.Stop()
}

// restarts is how often each watch has begun anew with a list. One may have done so more often than
// the other.
func (l *looks) restarts() (each [2]int) {
	for i, q := range l.watch.Status().Queries {
		each[i] = q.Restarts
	}
	return each
}

func sizeProperty(more ...any) map[string]any {
	p := map[string]any{"type": "integer"}
	for i := 0; i < len(more); i += 2 {
		p[more[i].(string)] = more[i+1]
	}
	return p
}

const sizePath = "/spec/versions/0/schema/openAPIV3Schema/properties/size"

func TestG6ADefaultOfASchemaIsShownAfterTheNextListInBothForms(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	g := newGadget(t, ns)
	g.install("v1")
	g.make("v1", ns, "a", "b")
	l := g.look("v1", ns, serverOf(t))
	l.shows(0, "a", "b")
	versions := fmt.Sprint(l.shown)
	typed, untyped := l.snap.Typed[0], l.snap.Untyped[0]

	g.edit(sizePath, sizeProperty("default", 7))
	require.Eventually(t, func() bool {
		_, served := l.sizes()
		return served == "a=7 b=7 | a=7 b=7 "
	}, patience, 50*time.Millisecond, "what the server has stored is read with the default")
	l.relist()
	l.shows(7, "a", "b")
	assert.Equal(t, versions, fmt.Sprint(l.shown), "no version has changed")
	assert.Zero(t, typed.Size, "G10: what was shown is not written to")
	assert.NotContains(t, untyped.Object, "size")

	typed, untyped = l.snap.Typed[0], l.snap.Untyped[0]
	l.relist()
	l.update()
	assert.Same(t, typed, l.snap.Typed[0], "the same content is an echo")
	assert.Same(t, untyped, l.snap.Untyped[0])
	g.edit(sizePath, sizeProperty()) // without a default
	require.Eventually(t, func() bool {
		_, served := l.sizes()
		return served == "a=0 b=0 | a=0 b=0 "
	}, patience, 50*time.Millisecond)
	l.relist()
	l.shows(0, "a", "b")
	assert.Equal(t, versions, fmt.Sprint(l.shown))
	g.remove()
}

func TestG6AStorageVersionThatMovesIsShownAfterTheNextListInBothForms(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	g, hook := newGadget(t, ns), newConverter(t)
	g.install("v1")
	g.make("v1", ns, "a", "b")
	hook.of(g)
	g.serving("v2", true)
	l := g.look("v1", ns, serverOf(t))
	l.shows(0, "a", "b")
	typed, untyped := l.snap.Typed[0], l.snap.Untyped[0]

	hook.size.Store(8)
	g.edit("/spec/versions/0/storage", false, "/spec/versions/1/storage", true)
	g.makeStoredAsV2(ns, "c", 8)
	l.showsAs("a=0 b=0 c=8 ")
	assert.Same(t, typed, l.snap.Typed[0], "the move alone changes nothing")
	assert.Same(t, untyped, l.snap.Untyped[0])
	moved := versionsOf(l.snap)

	hook.size.Store(9)
	g.edit("/spec/names/shortNames", []any{"gdg"}) // the server reads what is stored again
	require.Eventually(t, func() bool {
		_, served := l.sizes()
		return strings.HasPrefix(served, "a=0 b=0 c=9 ")
	}, patience, 50*time.Millisecond, "what is stored as v1 is not converted, and what is stored as v2 is")
	l.relist()
	l.showsAs("a=0 b=0 c=9 ")
	assert.Same(t, typed, l.snap.Typed[0])
	assert.Same(t, untyped, l.snap.Untyped[0])
	assert.Equal(t, moved, versionsOf(l.snap), "no version has changed")
	g.remove()
}

// makeStoredAsV2 creates an object as v1 once the server stores v2: then it is converted for the
// answer, and has the size that the webhook says.
func (g *gadget) makeStoredAsV2(ns, name string, size int64) {
	g.t.Helper()
	in := g.others().Resource(g.resource("v1")).Namespace(ns)
	require.Eventually(g.t, func() bool {
		o, err := in.Create(context.Background(), g.object("v1", ns, name, "red"), metav1.CreateOptions{})
		if err != nil {
			return false // the storage is being initialized
		}
		if o.Object["size"] == size {
			return true
		}
		_ = in.Delete(context.Background(), name, metav1.DeleteOptions{})
		return false
	}, patience, 200*time.Millisecond)
}

func TestG6AnotherVersionOfAWebhookIsShownAfterTheServerHasRestarted(t *testing.T) {
	t.Parallel()
	c := breakable(t)
	g, hook := newGadget(t, "ns"), newConverter(t)
	g.in = c.Config
	g.install("v1")
	g.make("v1", "ns", "a", "b")
	hook.size.Store(1)
	hook.of(g)
	g.serving("v2", true)
	l := g.look("v2", "ns", c.Config)
	l.shows(1, "a", "b")
	versions := fmt.Sprint(l.shown)

	hook.size.Store(2)
	l.relist()
	l.update()
	shown, served := l.sizes()
	require.Equal(t, "a=1 b=1 | a=1 b=1 ", served, "the server keeps what it has converted until it restarts")
	require.Equal(t, served, shown)
	require.NoError(t, c.Server().Kill())
	require.NoError(t, c.Server().Start())
	l.relist() // a watch may be resumed, and then nothing tells what it has shown before
	l.shows(2, "a", "b")
	assert.Equal(t, versions, fmt.Sprint(l.shown), "no version has changed")
}
