package katestest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/dump"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/internal/base/derived"
)

// Derives tests that a graph of package derive always has what an evaluation from scratch gives,
// whatever snapshots came before. build declares the graph and returns it. It is called for each
// graph that Derives needs.
//
//	func TestRows(t *testing.T) {
//		seq := katestest.NewSequence[Snapshot](t, client)
//		seq.Step("a service comes", …)
//		katestest.Derives(t, func() *derive.Graph[Snapshot] {
//			graph, _ := declareRows()
//			return graph
//		}, seq.Snapshots()...)
//	}
//
// Each snapshot is evaluated on a graph of its own. Then a graph gets all of them in their order,
// another one gets them backwards, one with skips, one with jumps from one end to the other, and
// one gets each twice. After each Update the graph is verified ([derive.Graph.Verify]), and all
// entries of all nodes are compared with those of the snapshot's own graph.
//
// So it finds a function that reads a clock, chance, the order of a map or a variable, one that
// writes to what it is given or has returned, and an Equal that hides what a reader of the value
// uses. The error names the snapshot, the node, the key, and what differs. It quotes values.
//
// It finds what the snapshots show: let them have what comes, changes, goes, comes back, and is
// wrong. A function that changes its mind once an hour is not found.
func Derives[S any](t testing.TB, build func() *derive.Graph[S], snapshots ...*S) {
	t.Helper()
	d := &derivation[S]{build: build, snapshots: snapshots}
	if err := d.check(); err != nil {
		t.Error("katestest.Derives: " + err.Error())
	}
}

// derivation is one call of Derives.
type derivation[S any] struct {
	build     func() *derive.Graph[S]
	snapshots []*S
	prints    [][]print        // of the snapshots, before the first Update
	scratch   [][]derived.Node // of the snapshots
}

func (d *derivation[S]) check() error {
	if len(d.snapshots) == 0 {
		return errors.New("there is no snapshot")
	}
	for i, s := range d.snapshots {
		if s == nil {
			return fmt.Errorf("snapshot %d is nil", i+1)
		}
		d.prints = append(d.prints, printsOf(s))
	}
	for i := range d.snapshots {
		nodes, err := d.update(d.graph(), i)
		// Who writes to a snapshot makes the runs differ, too: the cause comes first.
		if err := errors.Join(d.written(i), err); err != nil {
			return fmt.Errorf("%s, from scratch: %w", d.name(i), err)
		}
		d.scratch = append(d.scratch, nodes)
	}
	for _, o := range ordersOf(len(d.snapshots)) {
		if err := d.inOrder(o); err != nil {
			return err
		}
	}
	for i := range d.snapshots {
		if err := d.written(i); err != nil {
			return fmt.Errorf("%s: %w", d.name(i), err)
		}
	}
	return nil
}

// order is an order in which a graph gets the snapshots.
type order struct {
	name string
	of   []int
}

func ordersOf(n int) []order {
	forwards, backwards := make([]int, n), make([]int, n)
	var skips, odd, jumps, twice []int
	for i := range n {
		forwards[i], backwards[i] = i, n-1-i
		if i%2 == 0 {
			skips, jumps = append(skips, i), append(jumps, i/2)
		} else {
			odd, jumps = append(odd, i), append(jumps, n-1-i/2)
		}
		twice = append(twice, i, i)
	}
	return []order{
		{"forwards", forwards}, {"backwards", backwards}, {"with skips", append(skips, odd...)}, {"with jumps", jumps},
		{"each twice", twice},
	}
}

// inOrder gives one graph all snapshots.
func (d *derivation[S]) inOrder(o order) error {
	graph := d.graph()
	for n, i := range o.of {
		nodes, err := d.update(graph, i)
		if err == nil {
			err = compareNodes(nodes, d.scratch[i])
		}
		if err != nil {
			after := ""
			if n > 0 {
				after = fmt.Sprintf(", after snapshot %d", o.of[n-1]+1)
			}
			return fmt.Errorf("%s, %s%s:\n%w", d.name(i), o.name, after, err)
		}
	}
	return nil
}

func (d *derivation[S]) name(i int) string {
	return fmt.Sprintf("snapshot %d of %d", i+1, len(d.snapshots))
}

func (d *derivation[S]) graph() *derive.Graph[S] {
	graph := d.build()
	if graph != nil {
		derived.Verified(graph)
	}
	return graph
}

// update evaluates a snapshot, and returns what the graph has then.
func (d *derivation[S]) update(graph *derive.Graph[S], i int) ([]derived.Node, error) {
	if graph == nil {
		return nil, errors.New("the function has returned no graph")
	}
	if _, err := graph.Update(d.snapshots[i]); err != nil {
		return nil, err
	}
	return derived.Nodes(graph), nil
}

// print is what one object of a snapshot looked like.
type print struct{ name, text string }

// printsOf returns the objects of a snapshot, as texts that tell any two apart.
func printsOf(snapshot any) (all []print) {
	v := reflect.ValueOf(snapshot).Elem()
	if v.Kind() != reflect.Struct {
		return []print{{"it", dump.ForHash(snapshot)}}
	}
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case !field.CanInterface():
		case field.Kind() == reflect.Slice:
			for j := range field.Len() {
				all = append(all, printOf(fmt.Sprintf("%s[%d]", name, j), field.Index(j).Interface()))
			}
		default:
			all = append(all, printOf(name, field.Interface()))
		}
	}
	return all
}

func printOf(name string, v any) print {
	if o, is := v.(metav1.Object); is && !reflect.ValueOf(v).IsZero() {
		name += " (" + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/") + ")"
	}
	return print{name, dump.ForHash(v)}
}

// written says what was written to a snapshot.
func (d *derivation[S]) written(i int) error {
	now := printsOf(d.snapshots[i])
	for n, was := range d.prints[i] {
		if n >= len(now) {
			return errors.New("a function of the graph writes to the snapshot")
		}
		if now[n].text == was.text {
			continue
		}
		at := 0
		for at < min(len(was.text), len(now[n].text)) && was.text[at] == now[n].text[at] {
			at++
		}
		return fmt.Errorf("a function of the graph writes to what it is given: %s: %q is %q now",
			was.name, around(was.text, at), around(now[n].text, at))
	}
	return nil
}

// around is a part of a text.
func around(text string, at int) string {
	return strings.ToValidUTF8("…"+text[max(0, at-40):min(len(text), at+40)]+"…", "")
}

// maxDifferences bounds what an error lists.
const maxDifferences = 5

// compareNodes compares what a graph has with what an evaluation from scratch gives.
func compareNodes(has, scratch []derived.Node) error {
	same := func(a, b derived.Node) bool { return a.Name == b.Name && a.Kind == b.Kind }
	if !slices.EqualFunc(has, scratch, same) {
		return errors.New("the function declares other nodes each time")
	}
	var all, hidden []string
	for i := range has {
		here, less := differences(has[i], scratch[i])
		if all = append(all, here...); len(all) > 0 {
			break // what is made of it differs, too
		}
		hidden = append(hidden, less...)
	}
	if len(all) == 0 {
		return nil
	}
	if more := len(all) - maxDifferences; more > 0 {
		all = append(all[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(append(all, hidden[:min(len(hidden), maxDifferences)]...), "\n"))
}

// differences compares the entries of one node. hidden are those that differ, and count as equal
// by the node's own rule.
func differences(has, scratch derived.Node) (all, hidden []string) {
	want := map[string][]derived.Entry{}
	for _, e := range scratch.Entries {
		want[e.Key] = append(want[e.Key], e)
	}
	for _, e := range has.Entries {
		name := strings.TrimSuffix(has.Name+" "+e.Key, " ")
		if len(want[e.Key]) == 0 {
			all = append(all, fmt.Sprintf("%s: the graph has %s, an evaluation from scratch gives no such entry", name, textOf(e)))
			continue
		}
		w := want[e.Key][0]
		want[e.Key] = want[e.Key][1:]
		at := ""
		if path := derived.Difference(e.Value, w.Value); path != "" {
			at = " at " + path
		}
		switch {
		case e.Err != nil || w.Err != nil:
			if e.Err != nil && w.Err != nil && e.Err.Error() == w.Err.Error() {
				continue
			}
			all = append(all, fmt.Sprintf("%s: the graph has %s, an evaluation from scratch gives %s", name, textOf(e), textOf(w)))
		case reflect.DeepEqual(e.Value, w.Value):
		case has.Equal(e.Value, w.Value):
			hidden = append(hidden, fmt.Sprintf("maybe because %s counts as equal by the Equal of its node, and differs%s", name, at))
		default:
			all = append(all, fmt.Sprintf("%s: the graph has %s, an evaluation from scratch gives %s: they differ%s", name, textOf(e), textOf(w), at))
		}
	}
	for _, e := range scratch.Entries {
		if left := want[e.Key]; len(left) > 0 {
			want[e.Key] = left[1:]
			name := strings.TrimSuffix(has.Name+" "+e.Key, " ")
			all = append(all, fmt.Sprintf("%s: the graph has no such entry, an evaluation from scratch gives %s", name, textOf(e)))
		}
	}
	keys := func(a, b derived.Entry) bool { return a.Key == b.Key }
	if len(all) == 0 && !slices.EqualFunc(has.Entries, scratch.Entries, keys) {
		all = append(all, has.Name+": the entries are in another order than from scratch")
	}
	return all, hidden
}

func textOf(e derived.Entry) string {
	if e.Err != nil {
		return fmt.Sprintf("the error %q", e.Err)
	}
	return short(fmt.Sprintf("%+v", e.Value))
}

// short cuts a text that is long.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
