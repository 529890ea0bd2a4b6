package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var gadgets = katestest.Match{Resource: "gadgets"}

// discoveries matches the discovery requests.
var discoveries = katestest.Match{Verb: "get", Where: func(r katestest.Request) bool { return r.Path == "/api" || r.Path == "/apis" }}

// follow begins to watch the kind in the follower's namespace.
func (g *gadget) follow(f *follower, version string, q kates.Query) {
	f.list = func() []kates.Unstructured { return f.listed(g.resource(version), f.ns, q.LabelSelector) }
	q.Namespace = f.ns
	if q.Kind == "" {
		q.Kind = g.kind
	}
	f.watch(q)
}

func TestG8AKindThatIsDeletedEmptiesItsFieldAndComesBack(t *testing.T) {
	t.Parallel()
	for name, disconnected := range map[string]bool{"its watch brings the deletions": false, "its watch is cut before": true} {
		for what, optional := range map[string]bool{"optional": true, "required": false} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				f := newFollower(t, nil)
				g := newGadget(t, f.ns)
				g.install("v1")
				g.make("v1", f.ns, "a", "b")
				g.follow(f, "v1", kates.Query{Optional: optional})
				f.arrive()
				others, err := f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: "cm", Namespace: f.ns})
				require.NoError(t, err)
				if disconnected {
					f.faults.On(gadgets).Hold()
					f.now(gadgets).Cut(0)
				}
				g.remove()
				f.change(0)
				var snap struct{ Objects []*kates.Unstructured }
				require.Eventually(t, func() bool {
					_, err := others.Update(t.Context(), &snap)
					return err == nil && len(snap.Objects) == 2
				}, patience, 10*time.Millisecond, "other kinds go on")
				if disconnected {
					f.unchanged()
					f.faults.Heal()
				}
				f.until(func() bool { return len(f.shown) == 0 && f.absent == optional }, "it is empty, and nil if it is optional")
				f.says(kates.StateMissing, "could not find the requested resource")
				require.NoError(t, f.acc.Ready())
				assert.Equal(t, optional, f.acc.Status().Err() == nil, "an optional kind that is not there is not wrong")
				g.hammers(f)

				g.install("v1")
				require.NoError(t, f.client.WaitFor(t.Context(), g.kind))
				require.NoError(t, f.client.Create(t.Context(), g.object("v1", f.ns, "own", "red"), nil))
				f.update()
				assert.Contains(t, f.shown, f.ns+"/own", "G4: though the watch is not back")
				assert.False(t, f.absent)
				g.make("v1", f.ns, "a", "c")
				f.arrive()
				f.quiet()
				f.client.Close()
				g.remove()
			})
		}
	}
}

// hammers counts how often the client asks for discovery while the kind is absent.
func (g *gadget) hammers(f *follower) {
	g.t.Helper()
	before, began := len(f.faults.Requests(discoveries)), time.Now()
	pause(g.t.Context(), 2*time.Second)
	asked := len(f.faults.Requests(discoveries)) - before
	// Discovery is two requests, once a second at most, however many wait.
	assert.LessOrEqual(g.t, asked, 2*(1+int(time.Since(began)/time.Second)))
}

// serve makes v2 served and stored, and v1 served or not.
func (g *gadget) serve(v1 bool) {
	v := gadgetVersion("v1", false)
	v["served"] = v1
	g.edit("/spec/versions", []any{v, gadgetVersion("v2", true)})
	g.serving("v2", true)
	g.serving("v1", v1)
}

func TestG8AVersionThatIsNoLongerServedIsFollowedWhereTheQueryNamesNone(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]kates.Query{"whole": {}, "metadata": {MetadataOnly: true}, "by label": {LabelSelector: "color=red"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			g := newGadget(t, f.ns)
			g.install("v1")
			g.make("v1", f.ns, "a", "b")
			g.follow(f, "v1", q)
			f.arrive()
			f.always = func() { require.Len(t, f.shown, 2, "G8: a gap") }
			updates := f.updates
			g.serve(true)
			f.unchanged()
			g.serve(false)
			f.list = func() []kates.Unstructured { return f.listed(g.resource("v2"), f.ns, "") }
			f.until(func() bool { return f.acc.Status().Queries[0].State == kates.StateSynced && f.api() == g.group+"/v2" }, "the objects are of v2")
			assert.LessOrEqual(t, f.updates, updates+1, "at one stroke")
			f.always = nil
			g.make("v2", f.ns, "c")
			f.arrive()
			f.quiet()
			f.client.Close()
			g.remove()
		})
	}
}

// api returns the API version of all shown objects, or "" if there are several.
func (f *follower) api() (version string) {
	for _, o := range f.shown {
		if version != "" && version != o.api {
			return ""
		}
		version = o.api
	}
	return version
}

func TestG8AVersionThatIsNoLongerServedKeepsItsObjectsWhereTheQueryNamesIt(t *testing.T) {
	t.Parallel()
	for what, optional := range map[string]bool{"optional": true, "required": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			g := newGadget(t, f.ns)
			g.install("v1")
			g.make("v1", f.ns, "a", "b")
			g.follow(f, "v1", kates.Query{Kind: strings.Replace(g.kind, ".", ".v1.", 1), Optional: optional})
			f.arrive()
			g.serve(false)
			f.says(kates.StateMissing, "could not find the requested resource")
			g.make("v2", f.ns, "c")
			pause(t.Context(), 3*time.Second) // the client looks for it in vain
			f.unchanged()
			assert.ErrorContains(t, f.acc.Status().Err(), "could not find the requested resource", "what is shown is old")
			assert.NoError(t, f.acc.Ready())
			g.serve(true)
			f.arrive()
			f.quiet()
			f.client.Close()
			g.remove()
		})
	}
}

func TestG5AChangeOfAKindsDefinitionIsNeitherAGapNorASignalNorADelta(t *testing.T) {
	t.Parallel()
	version := gadgetVersion("v2", false)
	for name, edit := range map[string][]any{
		"names":  {"/spec/names/shortNames", []any{"gdg"}},
		"schema": {"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size", map[string]any{"type": "integer"}},
		"printer column": {"/spec/versions/0/additionalPrinterColumns", []any{
			map[string]any{"name": "Color", "type": "string", "jsonPath": ".spec.color"},
		}},
		"version":          {"/spec/versions/-", version},
		"version, stored":  {"/spec/versions/0/storage", false, "/spec/versions/-", gadgetVersion("v2", true)},
		"selectable field": {"/spec/versions/0/selectableFields", []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			g := newGadget(t, f.ns)
			g.install("v1")
			g.make("v1", f.ns, "a", "b")
			g.follow(f, "v1", kates.Query{})
			f.arrive()
			short, err := f.client.Watch(t.Context(), kates.Query{Name: "Objects", Kind: g.kind, Namespace: f.ns, MetadataOnly: true})
			require.NoError(t, err)
			var snap struct {
				Objects []*kates.PartialObjectMetadata
			}
			<-short.Changed()
			_, err = short.Update(t.Context(), &snap)
			require.NoError(t, err)
			opened := len(f.faults.Requests(gadgets))
			g.edit(edit...)
			ended := func() bool {
				return len(f.faults.Requests(gadgets)) >= opened+2 && len(f.faults.Open(gadgets)) == 2
			}
			ctx := t.Context()
			for !ended() {
				f.unchanged()
				pause(ctx, 10*time.Millisecond)
			}
			f.quiet()
			changed, err := short.Update(ctx, &snap)
			require.NoError(t, err)
			assert.False(t, changed)
			poll(t, func() bool { return short.Status().Err() == nil }, "the other reader is well, too", func() any { return short.Status() })
			for i := range 3 {
				g.make("v1", f.ns, fmt.Sprint("late-", i))
			}
			f.arrive()
			f.client.Close()
			g.remove()
		})
	}
}

// The server ends all watches about a second after each change of a definition.
func TestG5WhatIsWrittenWhileADefinitionChangesIsNotLost(t *testing.T) {
	t.Parallel()
	f := newFollower(t, nil)
	g := newGadget(t, f.ns)
	g.install("v1")
	g.make("v1", f.ns, "a")
	g.follow(f, "v1", kates.Query{})
	f.arrive()
	in := foreign(t).Resource(g.resource("v1")).Namespace(f.ns)
	for round := range 2 {
		g.edit("/spec/names/shortNames", []any{fmt.Sprint("gdg", round)})
		for i := range 40 { // two seconds, in which some writes are refused
			name := fmt.Sprintf("o-%d-%d", round, i)
			_, _ = in.Create(t.Context(), g.object("v1", f.ns, name, "red"), metav1.CreateOptions{})
			_, _ = in.Patch(t.Context(), "a", types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, 100*round+i)), metav1.PatchOptions{})
			if i%3 == 0 {
				_ = in.Delete(t.Context(), name, metav1.DeleteOptions{})
			}
			f.update()
			require.Contains(t, f.shown, f.ns+"/a", "G5: a gap")
			pause(t.Context(), 40*time.Millisecond)
		}
	}
	f.arrive()
	f.quiet()
	f.client.Close()
	g.remove()
}

// TestG5G7G8AKindThatComesBackWithAnotherScopeIsShownAsItIs: so do the requests of a client that
// knew the former scope, and has no watch.
func TestG5G7G8AKindThatComesBackWithAnotherScopeIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{"Namespaced": "Cluster", "Cluster": "Namespaced"} {
		t.Run(from+" to "+to, func(t *testing.T) {
			t.Parallel()
			f := newFollower(t, nil)
			g := newGadget(t, f.ns)
			ns := map[string]string{"Namespaced": f.ns}
			f.list = func() []kates.Unstructured { return f.listed(g.resource("v1"), "", "") }
			g.installAs(from, "v1")
			g.make("v1", ns[from], "a")
			f.watch(kates.Query{Kind: g.kind})
			f.arrive()
			other, err := kates.NewClientFromRESTConfig(g.in)
			require.NoError(t, err)
			defer other.Close()
			require.NoError(t, other.Get(t.Context(), g.object("v1", f.ns, "a", ""), nil))

			g.remove()
			f.until(func() bool { return len(f.shown) == 0 }, "its objects are gone")
			g.installAs(to, "v1")
			g.make("v1", ns[to], "a", "b")
			f.arrive()
			f.quiet()
			require.Eventually(t, func() bool {
				return other.Get(t.Context(), g.object("v1", f.ns, "a", ""), nil) == nil
			}, patience, 50*time.Millisecond, "discovery may be late")
			require.NoError(t, other.Apply(t.Context(), g.object("v1", f.ns, "c", "red"), nil))
			f.arrive()
			f.client.Close()
			g.remove()
		})
	}
}
