package fleet

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// targetIndex says which targets an object belongs to. A name costs one look-up, however many
// targets there are. The labels of an object are compared with the selectors of its namespace, and
// with those of all namespaces.
type targetIndex struct {
	named map[types.NamespacedName]*wantedSet
	// by namespace; "" is all of them
	selecting, whole map[string]*wantedSet
}

type wantedSet map[*wanted]struct{}

func newTargetIndex() targetIndex {
	return targetIndex{make(map[types.NamespacedName]*wantedSet), make(map[string]*wantedSet), make(map[string]*wantedSet)}
}

func (x targetIndex) add(w *wanted) {
	x.change(w, func(s wantedSet) { s[w] = struct{}{} })
}

func (x targetIndex) remove(w *wanted) {
	x.change(w, func(s wantedSet) { delete(s, w) })
}

func (x targetIndex) change(w *wanted, edit func(wantedSet)) {
	switch t := w.target; {
	case t.Name != "":
		changeSet(x.named, types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, edit)
	case w.selector != nil:
		changeSet(x.selecting, t.Namespace, edit)
	default:
		changeSet(x.whole, t.Namespace, edit)
	}
}

func changeSet[K comparable](all map[K]*wantedSet, key K, edit func(wantedSet)) {
	if all[key] == nil {
		all[key] = &wantedSet{}
	}
	if edit(*all[key]); len(*all[key]) == 0 {
		delete(all, key)
	}
}

// each calls found for each target that a named object belongs to, or belonged to, before and
// after a change of what is shown.
func (x targetIndex) each(key types.NamespacedName, before, after objects, found func(*wanted)) {
	x.named[key].each(found)
	for _, namespace := range spaces(key.Namespace) {
		x.whole[namespace].each(found)
	}
	if len(x.selecting) == 0 {
		return
	}
	old, now := labelsIn(before, key), labelsIn(after, key)
	for _, namespace := range spaces(key.Namespace) {
		x.selecting[namespace].each(func(w *wanted) {
			if old != nil && w.selector.Matches(old) || now != nil && w.selector.Matches(now) {
				found(w)
			}
		})
	}
}

// spaces returns the namespaces of targets that an object may belong to.
func spaces(namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	return []string{namespace, ""}
}

func (s *wantedSet) each(f func(*wanted)) {
	if s == nil {
		return
	}
	for w := range *s {
		f(w)
	}
}

// labelsIn returns the labels of an object; nil if there is none.
func labelsIn(os objects, key types.NamespacedName) labels.Set {
	o, err := os.Get(key.Namespace, key.Name)
	if err != nil {
		return nil
	}
	if all := o.GetLabels(); all != nil {
		return all
	}
	return labels.Set{}
}
