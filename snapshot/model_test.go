package snapshot_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/internal/engine/tables"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/snapshot"
)

// modelForms are the fields that are compared with the model: each way of keying, pointers and
// values.
type modelForms struct {
	Pointers []*corev1.Service
	Values   []corev1.Service
	Untyped  []*unstructured.Unstructured
	Contents []map[string]any
	ByName   map[types.NamespacedName]*corev1.Service
	ByUID    map[types.UID]*corev1.Service
	ByValue  map[types.UID]corev1.Service
	ByString map[string]map[string]any
}

// model says with a plain map what a table must do. It compares a table with that map, and keeps
// all that the table ever delivered.
type model struct {
	binding   *snapshot.Binding
	query     int
	table     *tables.Table
	rows      map[tables.Key]tables.Row
	versions  int64
	delivered []reflect.Value
	frozen    []reflect.Value // copies of delivered, made on delivery
	busy      sync.WaitGroup  // the goroutines that copy ahead
}

// propTableIsItsModel draws a form and batches of changes, and compares after each batch.
func propTableIsItsModel(t *rapid.T) {
	typ := reflect.TypeFor[modelForms]()
	var queries []snapshot.Query
	for i := range typ.NumField() {
		queries = append(queries, snapshot.Query{Name: typ.Field(i).Name, SpansNamespaces: true})
	}
	b, err := snapshot.Compile(typ, queries)
	if err != nil {
		t.Fatal(err)
	}
	query := rapid.IntRange(0, len(queries)-1).Draw(t, "form")
	m := &model{binding: b, query: query, table: b.NewTable(query), rows: map[tables.Key]tables.Row{}}
	for range rapid.IntRange(1, 12).Draw(t, "batches") {
		m.apply(t, m.batch(t))
	}
	for i, value := range m.delivered {
		if !reflect.DeepEqual(value.Interface(), m.frozen[i].Interface()) {
			t.Fatalf("the value that was delivered as no. %d has changed", i)
		}
	}
}

func TestG7DiffsReplayedOnTheFirstSnapshotGiveTheSecond(t *testing.T) {
	rapid.Check(t, propTableIsItsModel)
}

func FuzzTable(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propTableIsItsModel)) }

// batch draws changes of distinct keys, few or many, in any order.
func (m *model) batch(t *rapid.T) []tables.Change {
	keys := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) tables.Key {
		return tables.Key{
			Namespace: rapid.SampledFrom([]string{"", "a", "a-b", "b"}).Draw(t, "namespace"),
			Name:      rapid.StringMatching("[ab-]{1,3}").Draw(t, "name"),
		}
	}), 0, 60, rapid.ID[tables.Key]).Draw(t, "keys")
	var changes []tables.Change
	for _, key := range keys {
		changes = append(changes, tables.Change{Key: key, Row: m.draw(t, key)})
	}
	return changes
}

// draw chooses the new row of a key.
func (m *model) draw(t *rapid.T, key tables.Key) *tables.Row {
	old, held := m.rows[key]
	fate := rapid.SampledFrom([]string{"gone", "shown", "shown", "again", "excluded", "rejected", "reverted"}).Draw(t, "fate")
	if fate == "gone" {
		return nil
	}
	source := tables.Object(old.Source)
	if !held || fate == "shown" || rapid.Bool().Draw(t, "new version") {
		source = m.object(key)
		if rapid.Bool().Draw(t, "with the UID of others") {
			source.SetUID(types.UID(rapid.SampledFrom([]string{"uid-1", "uid-2"}).Draw(t, "uid")))
		}
	}
	switch {
	case fate == "again" && held:
		return &old
	case fate == "excluded":
		return &tables.Row{Source: source, Excluded: true}
	case fate == "rejected":
		text := rapid.SampledFrom([]string{"bad", "worse"}).Draw(t, "error")
		return &tables.Row{Source: source, Err: errors.New(text)}
	}
	return rowOf(m.binding, m.query, source)
}

// object makes a new version of an object: a typed one for fields of typed elements, so that
// values are shared.
func (m *model) object(key tables.Key) tables.Object {
	m.versions++
	if m.query < 2 && m.versions%16 != 0 { // now and then the stream delivers another form
		return typed(key.Namespace, key.Name, int32(m.versions))
	}
	return untyped(key.Namespace, key.Name, m.versions)
}

// apply makes the changes in the table and in the model, and compares everything that is visible.
func (m *model) apply(t *rapid.T, changes []tables.Change) {
	before, shownBefore, invalidBefore := m.table.Value(), m.shown(), m.faults()
	m.ahead(t)
	defer m.busy.Wait()
	diffs, invalidChanged := m.table.Apply(changes)
	for _, c := range changes {
		if c.Row == nil {
			delete(m.rows, c.Key)
		} else {
			m.rows[c.Key] = *c.Row
		}
	}
	after := m.table.Value()

	m.compareDiffs(t, diffs, shownBefore)
	if same := before.UnsafePointer() == after.UnsafePointer(); same != (len(diffs) == 0) && before.Len()+after.Len() > 0 {
		t.Fatalf("%d diffs, and the value stayed the same: %v", len(diffs), same)
	}
	if after.Kind() == reflect.Slice && after.Cap() != after.Len() {
		t.Fatalf("capacity %d, length %d", after.Cap(), after.Len())
	}
	if want := !reflect.DeepEqual(invalidBefore, m.faults()); invalidChanged != want {
		t.Fatalf("invalid changed: %v, want %v", invalidChanged, want)
	}
	m.compareRows(t)
	m.compareValue(t, after)
	m.delivered = append(m.delivered, after)
	m.frozen = append(m.frozen, freeze(after))
}

// ahead sometimes begins the next value in advance, at once or in a goroutine.
func (m *model) ahead(t *rapid.T) {
	when := rapid.SampledFrom([]string{"not", "asked for", "before", "meanwhile"}).Draw(t, "ahead")
	if when == "not" {
		return
	}
	switch ahead := m.table.Ahead(); {
	case ahead == nil || when == "asked for":
	case when == "before":
		ahead()
	default:
		m.busy.Go(ahead)
	}
}

// compareDiffs applies the diffs to the previously shown rows.
func (m *model) compareDiffs(t *rapid.T, diffs []tables.Diff, replayed map[tables.Key]tables.Row) {
	if !slices.IsSortedFunc(diffs, func(a, b tables.Diff) int { return object.Compare(a.Key, b.Key) }) {
		t.Fatalf("diffs are not in key order: %v", diffs)
	}
	shown := m.shown()
	for _, d := range diffs {
		if d.Old != replayed[d.Key].Source || d.New != shown[d.Key].Source {
			t.Fatalf("diff %v is not from %v to %v", d, replayed[d.Key], shown[d.Key])
		}
		if d.Old == nil && d.New == nil || identical(replayed[d.Key], shown[d.Key]) {
			t.Fatalf("diff %v, but nothing changed", d)
		}
		delete(replayed, d.Key)
		if d.New != nil {
			replayed[d.Key] = shown[d.Key]
		}
	}
	if !maps.EqualFunc(replayed, shown, identical) {
		t.Fatalf("diffs replayed give %v, want %v", replayed, shown)
	}
}

// identical reports whether two rows show the same memory.
func identical(a, b tables.Row) bool {
	if a.Source != b.Source || a.Shown() != b.Shown() {
		return false
	}
	va, vb := reflect.ValueOf(a.Value), reflect.ValueOf(b.Value)
	if va.Kind() == reflect.Struct {
		return reflect.DeepEqual(a.Value, b.Value)
	}
	return va.UnsafePointer() == vb.UnsafePointer()
}

// compareRows checks All, Get, Held, Len and Invalid.
func (m *model) compareRows(t *rapid.T) {
	keys := slices.SortedFunc(maps.Keys(m.rows), object.Compare)
	var invalid []tables.Row
	i := 0
	for got := range m.table.All() {
		want := m.rows[keys[i]]
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("row %d is %v, want %v", i, got, want)
		}
		if row, ok := m.table.Get(keys[i]); !ok || !reflect.DeepEqual(row, want) {
			t.Fatalf("get %v gives %v, want %v", keys[i], row, want)
		}
		if got.Err != nil {
			invalid = append(invalid, got)
		}
		i++
	}
	if _, ok := m.table.Get(tables.Key{Name: "c"}); ok {
		t.Fatal("there is a row that there is not")
	}
	if i != len(keys) || m.table.Held() != len(keys) || m.table.Len() != len(m.shown()) {
		t.Fatalf("%d rows, %d held, %d shown; want %d and %d", i, m.table.Held(), m.table.Len(), len(keys), len(m.shown()))
	}
	if got := m.table.Invalid(); !reflect.DeepEqual(got, invalid) {
		t.Fatalf("invalid %v, want %v", got, invalid)
	}
}

// compareValue checks the delivered slice or map. Where rows share a map key, the first row must
// be in the map.
func (m *model) compareValue(t *rapid.T, v reflect.Value) {
	shown := m.shown()
	want := map[any]tables.Row{}
	for i, key := range slices.SortedFunc(maps.Keys(shown), object.Compare) {
		row, at := shown[key], any(i)
		switch {
		case v.Kind() == reflect.Slice:
		case v.Type().Key() == reflect.TypeFor[types.UID]():
			at = row.Source.GetUID()
		case v.Type().Key() == reflect.TypeFor[string]():
			at = strings.TrimPrefix(key.String(), "/")
		default:
			at = key
		}
		if _, twice := want[at]; !twice {
			want[at] = row
		}
	}
	if v.Len() != len(want) || v.IsNil() {
		t.Fatalf("%v has %d elements, want %d", v.Type(), v.Len(), len(want))
	}
	for at, row := range want {
		var got reflect.Value
		if i, ok := at.(int); ok {
			got = v.Index(i)
		} else {
			got = v.MapIndex(reflect.ValueOf(at))
		}
		if !got.IsValid() || !identical(row, tables.Row{Source: row.Source, Value: got.Interface()}) {
			t.Fatalf("%v is %v, want %v", at, got, row.Value)
		}
	}
}

// shown returns the rows that the snapshot must show.
func (m *model) shown() map[tables.Key]tables.Row {
	shown := maps.Clone(m.rows)
	maps.DeleteFunc(shown, func(_ tables.Key, r tables.Row) bool { return !r.Shown() })
	return shown
}

// fault is what Invalid reports of a row.
type fault struct {
	source tables.Object
	text   string
}

func (m *model) faults() map[tables.Key]fault {
	faults := map[tables.Key]fault{}
	for key, row := range m.rows {
		if row.Err != nil {
			faults[key] = fault{row.Source, row.Err.Error()}
		}
	}
	return faults
}

// freeze copies a slice or map, not what it points to.
func freeze(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Slice {
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		return c
	}
	c := reflect.MakeMapWithSize(v.Type(), v.Len())
	for _, key := range v.MapKeys() {
		c.SetMapIndex(key, v.MapIndex(key))
	}
	return c
}
