package testserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// ownersStep is a step of a script: something is made, deleted or let go, or the past is
// forgotten.
type ownersStep struct {
	do        string // make, delete, let go, compact
	name      int
	owners    []int // of what is made
	blocks    bool  // they wait for it, in the foreground
	finalizer bool
	policy    metav1.DeletionPropagation // of the deletion
	settles   bool                       // the collector is done before the next step
}

func drawOwners(t *rapid.T) []ownersStep {
	name := rapid.SampledFrom([]int{0, 1, 2, 3})
	policies := []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ownersStep {
		return ownersStep{
			do:        rapid.SampledFrom([]string{"make", "make", "make", "make", "delete", "delete", "let go", "compact"}).Draw(t, "do"),
			name:      name.Draw(t, "name"),
			owners:    rapid.SliceOfNDistinct(name, 0, 3, func(n int) int { return n }).Draw(t, "owners"),
			blocks:    rapid.Bool().Draw(t, "blocks"),
			finalizer: rapid.Bool().Draw(t, "finalizer"),
			policy:    rapid.SampledFrom(policies).Draw(t, "policy"),
			settles:   rapid.Bool().Draw(t, "settles"),
		}
	}), 15, 60).Draw(t, "script")
}

// history is what has happened to one object.
type history struct {
	name    string
	owners  []types.UID
	made    int // the step
	deleted int // the step; 0: not by the script
	policy  metav1.DeletionPropagation
}

// world is a server, and what a script has done to it.

type world struct {
	tested
	objects map[types.UID]*history
	newest  map[string]types.UID
}

func (w *world) step(at int, s ownersStep) {
	name := fmt.Sprint("o", s.name)
	path := configMaps + "/" + name
	_, o := w.ask(http.MethodGet, path, "")
	is := w.objects[o.GetUID()]
	switch {
	case s.do == "make" && is == nil:
		w.make(at, name, s)
	case s.do == "delete" && is != nil && is.deleted == 0:
		code, _ := w.ask(http.MethodDelete, path, "{apiVersion: v1, kind: DeleteOptions, propagationPolicy: "+string(s.policy)+
			", preconditions: {resourceVersion: '"+o.GetResourceVersion()+"'}}")
		if code != http.StatusOK {
			break // the collector was faster
		}
		if is.deleted = at; o.GetDeletionTimestamp() == nil {
			is.policy = s.policy // else it terminated before, with another one
		}
	case s.do == "let go" && is != nil:
		w.letGo(path)
	case s.do == "compact":
		w.Compact()
	}
	if s.settles {
		w.settle()
	}
}

// letGo removes the finalizer that is not the collector's.
func (w *world) letGo(path string) {
	for code := http.StatusConflict; code == http.StatusConflict; {
		_, o := w.ask(http.MethodGet, path, "")
		f := slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == "example.com/x" })
		code, _ = w.ask(http.MethodPatch, path, "{metadata: {resourceVersion: '"+o.GetResourceVersion()+
			"', finalizers: ["+strings.Join(f, ", ")+"]}}")
	}
}

func (w *world) make(at int, name string, s ownersStep) {
	is := &history{name: name, made: at}
	var owners []string
	for _, n := range s.owners {
		owner := fmt.Sprint("o", n)
		uid := w.newest[owner]
		if owner == name || uid == "" {
			continue
		}
		is.owners = append(is.owners, uid)
		owners = append(owners, reference(owner, string(uid), fmt.Sprint(", blockOwnerDeletion: ", s.blocks)))
	}
	more := ", ownerReferences: [" + strings.Join(owners, ", ") + "]"
	if s.finalizer {
		more += ", finalizers: [example.com/x]"
	}
	code, o := w.ask(http.MethodPost, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+more+"}}")
	if code == http.StatusCreated {
		w.objects[o.GetUID()], w.newest[name] = is, o.GetUID()
	}
}

// wrong says what the collector has left undone, and what it should not have done.
func (w *world) wrong() (errs []error) {
	there := map[types.UID]item{}
	stored, _, err := w.store.List("configmaps", "", 0)
	for _, c := range stored {
		o, _ := w.item(c.Key)
		there[o.object.GetUID()] = o
	}
	errs = append(errs, err)
	for uid, o := range there {
		f := o.object.GetFinalizers()
		switch waits := slices.Contains(f, metav1.FinalizerDeleteDependents); {
		case o.object.GetDeletionTimestamp() == nil:
			errs = append(errs, w.owned(o, there))
		case len(f) == 0 || slices.Contains(f, metav1.FinalizerOrphanDependents), waits && !blocked(uid, there):
			errs = append(errs, fmt.Errorf("%s terminates, and nothing keeps it but %v", o.key.Name, f))
		}
	}
	for uid, is := range w.objects {
		if _, stays := there[uid]; !stays && is.deleted == 0 {
			errs = append(errs, w.justified(is, there))
		}
	}
	return errs
}

// blocked reports whether a dependent is there that its owner waits for.
func blocked(owner types.UID, there map[types.UID]item) bool {
	for _, o := range there {
		for _, r := range o.object.GetOwnerReferences() {
			if r.UID == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}

// owned checks that all owners of an object are there, and wait for nothing.
func (w *world) owned(o item, there map[types.UID]item) error {
	for _, r := range o.object.GetOwnerReferences() {
		owner, is := there[r.UID]
		if !is || slices.Contains(owner.object.GetFinalizers(), metav1.FinalizerDeleteDependents) && owner.object.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s stays, but its owner %s does not", o.key.Name, r.Name)
		}
	}
	return nil
}

// justified checks that an object that is gone has lost all its owners, and not been left an
// orphan by all of them.
func (w *world) justified(is *history, there map[types.UID]item) error {
	left := len(is.owners) == 0
	orphaned := true
	for _, uid := range is.owners {
		owner := w.objects[uid]
		o, stays := there[uid]
		left = left || stays && o.object.GetDeletionTimestamp() == nil
		orphaned = orphaned && owner.deleted > is.made && owner.policy == metav1.DeletePropagationOrphan
	}
	if left || orphaned {
		return fmt.Errorf("%s, made in step %d, is gone: nobody has deleted it, and an owner stays, or made it an orphan", is.name, is.made)
	}
	return nil
}

// TestTheCollectorTakesWhatHasLostItsOwnersAndNothingElse tries scripts at random.
func TestTheCollectorTakesWhatHasLostItsOwnersAndNothingElse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := drawOwners(r)
		var wrong error
		synctest.Test(t, func(t *testing.T) {
			s, err := New(scheme.Scheme, kinds.BuiltIn(scheme.Scheme, served))
			if err != nil {
				wrong = err
				return
			}
			defer s.Close()
			s.Control()
			w := &world{tested{t, s}, map[types.UID]*history{}, map[string]types.UID{}}
			for i, step := range script {
				w.step(i+1, step)
			}
			w.settle()
			wrong = errors.Join(w.wrong()...)
		})
		if wrong != nil {
			r.Fatalf("%+v\n%v", script, wrong)
		}
	})
}
