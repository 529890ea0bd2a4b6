package derive

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// scene is a snapshot of the model.
type scene struct {
	objects  []*metav1.PartialObjectMetadata
	records  []record
	pointers []*record
	text     string
	number   int
}

// record has a key and what else there is of it. Two with equal fields are the same record.
type record struct {
	Key, Text string
	N         int
}

var (
	objectKeys = []string{"a/0", "a/1", "a/2", "b/0", "b/1", "b/2"}
	recordKeys = []string{"r0", "r1", "r2", "r3", "r4"}
)

func nameOf(key string) types.NamespacedName {
	return types.NamespacedName{Namespace: key[:1], Name: key[2:]}
}

func objectText(o *metav1.PartialObjectMetadata) string {
	return o.Labels["app"] + "#" + o.ResourceVersion
}

func recordText(r record) string { return r.Text + "#" + strconv.Itoa(r.N) }

func pointerText(r *record) string { return recordText(*r) }

// history makes scenes: each is the one before with some changes, in slices that may be new.
type history struct {
	now    scene
	serial int
	past   []scene
}

// next draws the snapshot that follows.
func (h *history) next(t *rapid.T) scene {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		h.change(t)
	}
	h.past = append(h.past, h.now)
	if len(h.past) > 5 {
		h.past = h.past[1:]
	}
	if len(h.past) > 1 && rapid.IntRange(0, 15).Draw(t, "older") == 0 {
		return h.past[rapid.IntRange(0, len(h.past)-1).Draw(t, "which")]
	}
	return h.now
}

func (h *history) change(t *rapid.T) {
	h.serial++
	switch rapid.IntRange(0, 11).Draw(t, "change") {
	case 0, 1, 2:
		k := nameOf(rapid.SampledFrom(objectKeys).Draw(t, "object"))
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name,
			ResourceVersion: strconv.Itoa(h.serial), Labels: map[string]string{"app": rapid.SampledFrom(innerKeys).Draw(t, "app")}}}
		h.now.objects = edited(t, h.now.objects, o, func(a, b *metav1.PartialObjectMetadata) bool {
			return a != nil && b != nil && a.Namespace == b.Namespace && a.Name == b.Name
		})
	case 3, 4, 5:
		r := drawRecord(t)
		h.now.records = edited(t, h.now.records, r, func(a, b record) bool { return a.Key == b.Key })
	case 6, 7, 8:
		r := drawRecord(t)
		r.N = h.serial
		h.now.pointers = edited(t, h.now.pointers, &r, func(a, b *record) bool { return a != nil && b != nil && a.Key == b.Key })
	case 9:
		h.now.text = rapid.SampledFrom(innerKeys).Draw(t, "text")
		h.now.number = rapid.IntRange(0, 2).Draw(t, "number")
	case 10:
		h.inOrder()
	case 11:
		h.disorder(t)
	}
}

func drawRecord(t *rapid.T) record {
	return record{Key: rapid.SampledFrom(recordKeys).Draw(t, "record"), Text: rapid.SampledFrom(innerKeys).Draw(t, "text"),
		N: rapid.IntRange(0, 1).Draw(t, "n")}
}

// edited returns a new slice. In it x is in the place of that with its key, or is added, or those
// with its key are removed.
func edited[T any](t *rapid.T, all []T, x T, same func(a, b T) bool) []T {
	i := slices.IndexFunc(all, func(y T) bool { return same(x, y) })
	next := slices.Clone(all)
	switch remove := rapid.IntRange(0, 2).Draw(t, "remove") == 0; {
	case remove:
		return slices.DeleteFunc(next, func(y T) bool { return same(x, y) })
	case i >= 0:
		next[i] = x
		return next
	}
	return append(next, x)
}

// inOrder orders all slices by their keys, and takes out what is nil or there twice.
func (h *history) inOrder() {
	h.now.objects = ordered(h.now.objects, func(o *metav1.PartialObjectMetadata) (string, bool) {
		if o == nil {
			return "", false
		}
		return o.Namespace + "/" + o.Name, true
	})
	h.now.records = ordered(h.now.records, func(r record) (string, bool) { return r.Key, true })
	h.now.pointers = ordered(h.now.pointers, func(r *record) (string, bool) {
		if r == nil {
			return "", false
		}
		return r.Key, true
	})
}

func ordered[T any](all []T, key func(T) (string, bool)) []T {
	var next []T
	for _, x := range all {
		if _, is := key(x); is {
			next = append(next, x)
		}
	}
	slices.SortStableFunc(next, func(a, b T) int {
		x, _ := key(a)
		y, _ := key(b)
		if x < y {
			return -1
		}
		if x > y {
			return 1
		}
		return 0
	})
	return slices.CompactFunc(next, func(a, b T) bool {
		x, _ := key(a)
		y, _ := key(b)
		return x == y
	})
}

// disorder makes what a snapshot of kates does not have.
func (h *history) disorder(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "disorder") {
	case 0:
		h.now.objects = append(slices.Clone(h.now.objects), nil)
	case 1:
		if n := len(h.now.objects); n > 0 {
			h.now.objects = append(slices.Clone(h.now.objects), h.now.objects[rapid.IntRange(0, n-1).Draw(t, "twice")])
		}
	case 2:
		h.now.records = append(slices.Clone(h.now.records), drawRecord(t))
	case 3:
		h.now.pointers = append([]*record{nil}, h.now.pointers...)
	case 4:
		h.now.objects = slices.Clone(h.now.objects)
		slices.Reverse(h.now.objects)
		h.now.records = slices.Clone(h.now.records)
	case 5:
		h.now.objects, h.now.records = nil, nil
	case 6:
		h.now.pointers = nil
	}
}
