package kates_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

var errRefused = errors.New("the program refuses it")

// node is what a program may want of a Pod.
type node struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

// misfit is a struct that no Pod of the node "bad" is.
type misfit struct {
	Spec struct {
		NodeName refusingName `json:"nodeName"`
	} `json:"spec"`
}

type refusingName string

func (p *refusingName) UnmarshalJSON(text []byte) error {
	return refuse(strings.Trim(string(text), "\""))
}

// refuse is the judgement of functions: it is about pods of the node "bad".
func refuse(nodeName string) error {
	if nodeName == "bad" {
		return errRefused
	}
	return nil
}

// requireWhole waits for the pod of a name among what is invalid, and checks that it is the pod as
// the server has it. A pod that others have made has a status.
func requireWhole(t *testing.T, invalid <-chan kates.Invalid, name string) {
	t.Helper()
	i := <-invalid
	for i.Object.GetName() != name {
		i = <-invalid
	}
	require.Error(t, i.Err)
	u := i.Object
	assert.Equal(t, "v1 Pod default "+name, fmt.Sprint(u.GetAPIVersion(), " ", u.GetKind(), " ", u.GetNamespace(), " ", u.GetName()))
	assert.Equal(t, map[string]string{"app": "web"}, u.GetLabels())
	assert.NotEmpty(t, u.GetAnnotations())
	hostname, _, _ := unstructured.NestedString(u.Object, "spec", "hostname")
	assert.Equal(t, "host", hostname, "no function reads it")
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers")
	assert.Len(t, containers, 2)
	if name == "listed" {
		ip, _, _ := unstructured.NestedString(u.Object, "status", "podIP")
		assert.Equal(t, "10.0.0.1", ip, "no function reads it")
	}
}

// invalidity is a query of pods for which pods of the node "bad" are invalid.
type invalidity struct {
	query kates.Query
	keyed bool // by the query's Key
	kept  bool // it says which fields are held
}

var invalidities = map[string]invalidity{
	"Where":              {query: kates.Query{Where: kates.WhereOf(func(p *kates.Pod) (bool, error) { return true, refuse(p.Spec.NodeName) })}},
	"Where of a struct":  {query: kates.Query{Where: kates.WhereOf(func(n *node) (bool, error) { return true, refuse(n.Spec.NodeName) })}},
	"Where with Keep":    {kept: true, query: kates.Query{Projection: kates.Keep("metadata.name"), Where: kates.WhereOf(func(n *node) (bool, error) { return true, refuse(n.Spec.NodeName) })}},
	"Where does not fit": {query: kates.Query{Where: kates.WhereOf(func(m *misfit) (bool, error) { return true, nil })}},
	"Where, with Transform": {query: kates.Query{
		Transform: kates.DropManagedFields,
		Where:     kates.WhereOf(func(p *kates.Pod) (bool, error) { return true, refuse(p.Spec.NodeName) }),
	}},
	"Transform": {query: kates.Query{Transform: kates.TransformOf(func(p *kates.Pod) error {
		err := refuse(p.Spec.NodeName)
		p.Status, p.Labels, p.Spec.Hostname = corev1.PodStatus{}, nil, "" // what it has done before it fails
		return err
	})}},
	"Transform of content": {query: kates.Query{Transform: kates.TransformOf(func(u *kates.Unstructured) error {
		nodeName, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		delete(u.Object, "status")
		u.SetLabels(nil)
		return refuse(nodeName)
	})}},
	"Key after a Transform": {keyed: true, query: kates.Query{
		Transform: kates.DropFields("status", "metadata.labels", "spec.hostname"),
		Key:       kates.KeyOf(func(p *kates.Pod) []string { return keysOrPanic(p.Spec.NodeName) }),
	}},
	"Key":           {keyed: true, query: kates.Query{Key: kates.KeyOf(func(p *kates.Pod) []string { return keysOrPanic(p.Spec.NodeName) })}},
	"Key of struct": {keyed: true, query: kates.Query{Key: kates.KeyOf(func(n *node) []string { return keysOrPanic(n.Spec.NodeName) })}},
	"Key with Keep": {keyed: true, kept: true, query: kates.Query{Projection: kates.Keep("metadata.name"), Key: kates.KeyOf(func(n *node) []string { return keysOrPanic(n.Spec.NodeName) })}},
	"Key does not fit": {keyed: true, kept: true, query: kates.Query{
		Projection: kates.Keep("metadata.name"), Key: kates.KeyOf(func(m *misfit) []string { return nil }),
	}},
}

func keysOrPanic(nodeName string) []string {
	if err := refuse(nodeName); err != nil {
		panic(err)
	}
	return []string{"x"}
}

// reported starts the reader of a query of pods, and returns the invalid objects that it reports.
func reported[S any](t *testing.T, c *kates.Client, keyed bool, q kates.Query) <-chan kates.Invalid {
	t.Helper()
	all := make(chan kates.Invalid, 100)
	c = c.With(kates.WithInterval(0), kates.WithOnInvalid(func(i kates.Invalid) { all <- i }))
	if !keyed {
		s, err := kates.Watch[S](t.Context(), c, q)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		go func() {
			for range s.All(t.Context()) { //nolint:revive // the function of WithOnInvalid gets what there is
			}
		}()
		return all
	}
	each, err := kates.WatchEach[S](t.Context(), c, q)
	require.NoError(t, err)
	t.Cleanup(each.Close)
	go func() {
		for {
			turn, err := each.Next(t.Context())
			if err != nil {
				return
			}
			turn.Done(nil)
		}
	}()
	return all
}

// recorded counts the requests of a client of a server that has the objects.
func recorded(t *testing.T, options []kates.Option, objects ...kates.Object) (*kates.Client, *katestest.Faults) {
	t.Helper()
	faults := katestest.NewFaults(t, 1)
	config := rest.CopyConfig(katestest.NewServer(t, katestest.WithObjects(objects...)).Config)
	config.Wrap(faults.Wrap)
	c, err := kates.NewClientFromRESTConfig(config, append(options, kates.WithInterval(0))...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, faults
}

// TestG4G8WhatIsInvalidIsWhole: whatever the field holds, of a list, of an event, and of the answer
// to an own write.
func TestG4G8WhatIsInvalidIsWhole(t *testing.T) {
	type typed struct{ Pods []*kates.Pod }
	type untyped struct {
		Pods []*kates.Unstructured `kates:"pods"`
	}
	type some struct {
		Pods []*node `kates:"pods"`
	}
	type misfits struct {
		Pods []*misfit `kates:"pods"`
	}
	for form, read := range map[string]func(*testing.T, *kates.Client, bool, kates.Query) <-chan kates.Invalid{
		"typed": reported[typed], "untyped": reported[untyped], "a struct": reported[some],
	} {
		for how, of := range invalidities {
			if form == "a struct" && of.kept {
				continue // the struct says what is held
			}
			for name, c := range keepClients(t, fullPod("listed", "bad"), fullPod("good", "7")) {
				t.Run(form+"/"+how+"/"+name, func(t *testing.T) {
					wholeByEveryWay(t, c, func(c *kates.Client) <-chan kates.Invalid {
						q := of.query
						q.Name = "Pods"
						return read(t, c, of.keyed, q)
					})
				})
			}
		}
	}
	for name, c := range keepClients(t, fullPod("listed", "bad"), fullPod("good", "7")) {
		t.Run("the field/"+name, func(t *testing.T) {
			wholeByEveryWay(t, c, func(c *kates.Client) <-chan kates.Invalid {
				return reported[misfits](t, c, false, kates.Query{Name: "Pods"})
			})
		})
	}
}

// wholeByEveryWay checks what a reader reports of pods that become invalid.
func wholeByEveryWay(t *testing.T, c *kates.Client, read func(*kates.Client) <-chan kates.Invalid) {
	invalid := read(c)
	requireWhole(t, invalid, "listed")
	require.NoError(t, c.Create(t.Context(), fullPod("own", "bad"), nil))
	requireWhole(t, invalid, "own")
}

func TestNoRequestIsSentForWhatIsInvalid(t *testing.T) {
	type some struct {
		Pods    []*node `kates:"pods"`
		Invalid []kates.Invalid
	}
	for how, of := range invalidities {
		if of.kept {
			continue
		}
		t.Run(how, func(t *testing.T) {
			c, faults := recorded(t, nil, fullPod("a", "bad"))
			q := of.query
			q.Name = "Pods"
			invalid := reported[some](t, c, of.keyed, q)
			requireWhole(t, invalid, "a")
			for _, r := range faults.Requests(katestest.Match{Resource: "pods"})[1:] {
				assert.Equal(t, "watch", r.Verb, "a list, streamed or not, and a watch that follows")
			}
		})
	}
}

type nodes struct {
	Pods    []*node `kates:"pods"`
	Invalid []kates.Invalid
}

// wholeOnes says which of the invalid objects are whole, by their names.
func wholeOnes(all []kates.Invalid) map[string]bool {
	is := make(map[string]bool)
	for _, i := range all {
		_, is[i.Object.GetName()] = i.Object.Object["status"]
	}
	return is
}

// TestG6WhatIsHeldOfInvalidObjectsIsBounded: by bytes, and what is gone or valid makes room.
func TestG6WhatIsHeldOfInvalidObjectsIsBounded(t *testing.T) {
	var pods []kates.Object
	for _, name := range []string{"a", "b", "c"} {
		pod := fullPod(name, "") // one that runs on a node is deleted later
		pod.Labels["node"] = "bad"
		pod.Annotations["long"] = strings.Repeat("x", 100_000)
		pods = append(pods, pod)
	}
	c, _ := recorded(t, []kates.Option{kates.Tuning{MaxObjectBytes: 250_000}}, pods...)
	s, err := kates.Watch[nodes](t.Context(), c, kates.Query{
		Name: "Pods", Where: kates.WhereOf(func(n *node) (bool, error) { return true, refuse(n.Metadata.Labels["node"]) }),
	})
	require.NoError(t, err)
	defer s.Close()
	var snap nodes
	next(t, s, &snap, func() bool { return len(snap.Invalid) == 3 })
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": false}, wholeOnes(snap.Invalid))
	assert.Equal(t, "web", snap.Invalid[2].Object.GetLabels()["app"], "its metadata is known")
	assert.ErrorIs(t, snap.Invalid[2].Err, errRefused)

	touch := func(name, node string) {
		t.Helper()
		pod := &kates.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, c.Get(t.Context(), pod, pod))
		pod.Labels["node"], pod.Labels["more"] = node, pod.Labels["more"]+"x"
		require.NoError(t, c.Update(t.Context(), pod, nil))
		_, err := s.Update(t.Context(), &snap)
		require.NoError(t, err)
	}
	touch("c", "bad")
	assert.Equal(t, map[string]bool{"a": true, "b": true, "c": false}, wholeOnes(snap.Invalid))
	touch("a", "good")
	touch("c", "bad")
	assert.Equal(t, map[string]bool{"b": true, "c": true}, wholeOnes(snap.Invalid), "one that is valid has made room")
	require.NoError(t, c.Delete(t.Context(), pods[1], nil))
	next(t, s, &snap, func() bool { return len(snap.Invalid) == 1 })
	touch("a", "bad")
	assert.Equal(t, map[string]bool{"a": true, "c": true}, wholeOnes(snap.Invalid), "one that is gone has made room")
}

// TestG8AChangeOfAnInvalidObjectWakesTheProgram: though its Signal finds the change not worth it,
// as it is the status that changes.
func TestG8AChangeOfAnInvalidObjectWakesTheProgram(t *testing.T) {
	quiet := kates.SignalOf(func(old, current metav1.Object) bool { return old == nil || current == nil })
	for how, of := range map[string]invalidity{
		"by a Where of metadata": {query: kates.Query{Where: kates.WhereOf(func(o metav1.Object) (bool, error) { return true, refuse(o.GetLabels()["node"]) })}},
		"by a Key of metadata":   {keyed: true, query: kates.Query{Key: kates.KeyOf(func(o metav1.Object) []string { return keysOrPanic(o.GetLabels()["node"]) })}},
		"by a Key":               invalidities["Key"],
	} {
		pod := fullPod("a", "bad")
		pod.Labels["node"] = "bad"
		for name, c := range keepClients(t, pod) {
			t.Run(how+"/"+name, func(t *testing.T) {
				type typed struct {
					Pods    []*kates.Pod
					Invalid []kates.Invalid
				}
				q := of.query
				q.Name, q.Signal = "Pods", quiet
				invalid := reported[typed](t, c, of.keyed, q)
				<-invalid
				now := &kates.Pod{}
				require.NoError(t, c.Get(t.Context(), pod, now))
				now.Status.Message = "changed"
				require.NoError(t, c.UpdateStatus(t.Context(), now, nil))
				for i := range invalid {
					if m, _, _ := unstructured.NestedString(i.Object.Object, "status", "message"); m == "changed" {
						return
					}
				}
			})
		}
	}
}

// TestAWatchThatAsksNoKeyIsNotInvalidByOne: the same queries can be for Watch and for WatchEach.
func TestAWatchThatAsksNoKeyIsNotInvalidByOne(t *testing.T) {
	c, _ := recorded(t, nil, fullPod("a", "bad"))
	q := kates.Query{Name: "Pods", Key: invalidities["Key of struct"].query.Key}
	each, err := kates.WatchEach[nodes](t.Context(), c, q)
	require.NoError(t, err)
	defer each.Close()
	s, err := kates.Watch[nodes](t.Context(), c, q)
	require.NoError(t, err)
	defer s.Close()
	var snap nodes
	next(t, s, &snap, func() bool { return len(snap.Pods) == 1 })
	assert.Empty(t, snap.Invalid)
}
