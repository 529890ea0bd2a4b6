package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/kates"
)

func TestARootThatWasDeletedIsReconciledOnceMoreWithTheLastKnownObjectAndWhatItOwns(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		w.owns("a", "u", "d")
		w.owns("a", "u0", "earlier")
		w.secret("s", "ns/a")
		c := &calls{}
		var before *corev1.ConfigMap
		c.answer = func(_ context.Context, a *app) (controller.Result, error) {
			if a.Info.Departure != "" {
				assert.Same(t, before, a.Root)
			}
			before = a.Root
			return controller.Done, nil
		}
		r := run(w, c.reconcile, bySecret)
		c.taken()
		w.remove(configs, "ns", "a")
		r.runs()
		assert.Equal(t, []string{"ns/a u=1 +d *s deleted"}, c.taken())
		assert.Zero(t, w.count("get"), "no need to ask")
		assert.Empty(t, r.Keys(), "forgotten")
		w.remove(deploys, "ns", "d")
		w.remove(deploys, "ns", "earlier")
		w.remove(secrets, "ns", "s")
		r.TriggerAll()
		r.runs()
		assert.Empty(t, c.taken())
		r.stop()
	})
}

func TestADepartedRootHasWhatIsForAllThoughNothingElseHasItsKey(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		w.put(corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		w.remove(configs, "ns", "a")
		r.runs()
		assert.Equal(t, []string{"ns/a u=1 @n", "ns/a u=1 @n deleted"}, c.taken())
		r.stop()
	})
}

func TestADepartedRootIsReconciledUntilThatSucceedsAndThenForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		n := 0
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			if a.Info.Departure == "" {
				return controller.Done, nil
			}
			switch n++; n {
			case 1:
				return controller.Done, errOops
			case 2:
				return controller.RequeueAfter(hour), nil
			}
			return controller.Done, nil
		}}
		r := run(w, c.reconcile, bySecret)
		c.taken()
		w.remove(configs, "ns", "a")
		<-after(hour - second)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1 deleted", "ns/a u=1 deleted"}, c.taken())
		assert.Equal(t, []string{"ns/a"}, r.Keys())
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1 deleted"}, c.taken())
		assert.Empty(t, r.Keys())
		<-after(24 * hour)
		r.runs()
		assert.Empty(t, c.taken())
		r.stop()
	})
}

func TestAPermanentErrorOfADepartedRootForgetsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
			if a.Info.Departure == "" {
				return controller.Done, nil
			}
			return controller.Done, kates.Permanent(errOops)
		}}
		r := run(w, c.reconcile, bySecret)
		w.remove(configs, "ns", "a")
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1", "ns/a u=1 deleted"}, c.taken())
		assert.Empty(t, r.Keys())
		assert.Empty(t, r.Status().Failing)
		r.stop()
	})
}

func TestG7ARootThatAnotherOneReplacedDepartsFirstAndItsSuccessorIsNextWithItsOwnWritesInSight(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.owns("a", "u1", "old")
		c, replaced := &calls{}, make(chan struct{})
		c.answer = func(ctx context.Context, a *app) (controller.Result, error) {
			if a.Info.Departure != "" {
				return controller.Done, w.Client.Create(ctx, ownedObject("a", "u2", "new"), nil)
			}
			<-replaced // one turn then finds both changes
			return controller.Done, nil
		}
		r := run(w, c.reconcile, bySecret, kates.WithQuietOwnWrites())
		c.taken()
		w.remove(configs, "ns", "a")
		w.root("a", "u2", "2")
		r.runs()
		close(replaced)
		r.runs()
		assert.Equal(t, []string{"ns/a u1=1 +old deleted", "ns/a u2=2 +new"}, c.taken())
		r.stop()
	})
}

// selected is a query of roots with a label, and chosen is one by a function.
var (
	selected = kates.Query{Name: "Root", LabelSelector: "on"}
	chosen   = kates.Query{Name: "Root", Where: kates.WhereOf(func(o metav1.Object) (bool, error) {
		_, on := o.GetLabels()["on"]
		return on, nil
	})}
)

func (w *world) labelled(uid string, labels map[string]string) {
	o := rootObject("a", uid, "1")
	o.Labels = labels
	w.put(configs, o)
}

func TestARootThatLeftItsQueryIsToldFromOneThatWasDeletedAsFarAsTheServerTells(t *testing.T) {
	forbidden := apierrors.NewForbidden(configs.GroupResource(), "a", errors.New("no"))
	for how, query := range map[string]kates.Query{"by label": selected, "by Where": chosen} {
		for want, leave := range map[string]func(w *world){
			"left":    func(w *world) { w.labelled("u", nil) },
			"deleted": func(w *world) { w.remove(configs, "ns", "a") },
			"unknown": func(w *world) { w.remove(configs, "ns", "a") },
		} {
			t.Run(how+", "+want, func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.labelled("u", map[string]string{"on": ""})
					w.outage("get", "configmaps", forbidden).Store(want == "unknown")
					c := &calls{}
					r := run(w, c.reconcile, bySecret, query)
					assert.Equal(t, []string{"ns/a u=1"}, c.taken())
					leave(w)
					r.runs()
					assert.Equal(t, []string{"ns/a u=1 " + want}, c.taken())
					assert.Empty(t, r.Keys())
					if want == "left" {
						w.labelled("u", map[string]string{"on": ""})
						r.runs()
						assert.Equal(t, []string{"ns/a u=1"}, c.taken())
					}
					r.stop()
				})
			})
		}
	}
	inWorld(t, func(w *world) {
		w.labelled("u", map[string]string{"on": ""})
		c := &calls{}
		r := run(w, c.reconcile, bySecret, selected)
		w.remove(configs, "ns", "a")
		w.labelled("another", nil)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1", "ns/a u=1 deleted"}, c.taken())
		r.stop()
	})
}

func TestARootThatNothingRefersToAnyMoreHasLeftAndIsNotTakenForDeleted(t *testing.T) {
	for want, leave := range map[string]func(w *world){
		"left":    func(w *world) { w.secret("s", "") },
		"deleted": func(w *world) { w.remove(configs, "ns", "a") },
	} {
		inWorld(t, func(w *world) {
			w.root("a", "u", "1")
			w.root("b", "u2", "1")
			w.secret("s", "ns/a")
			c := &calls{}
			r := run(w, c.reconcile, bySecret, kates.Query{Name: "Root", Refs: []kates.Ref{
				kates.RefsOf("Secrets", func(s *corev1.Secret) []types.NamespacedName {
					namespace, name, _ := strings.Cut(s.Labels["app"], "/")
					return []types.NamespacedName{{Namespace: namespace, Name: name}}
				}),
			}})
			assert.Equal(t, []string{"ns/a u=1 *s"}, c.taken())
			leave(w)
			r.runs()
			assert.Contains(t, strings.Join(c.taken(), "\n"), want)
			assert.Empty(t, r.Keys())
			r.stop()
		})
	}
}

func TestWhileTheServerCannotBeAskedHowARootDepartedItIsNotReconciled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.labelled("u", map[string]string{"on": ""})
		down := w.outage("get", "configmaps", errors.New("down"))
		c, errs := &calls{}, newJournal()
		r := run(w, c.reconcile, bySecret, selected, told(errs))
		down.Store(true)
		w.labelled("u", nil)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1"}, c.taken())
		assert.Equal(t, []string{`ns/a 1 get configmaps "ns/a": down 0s`}, errs.taken())
		down.Store(false)
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"ns/a u=1 left"}, c.taken())
		r.stop()
	})
}

func TestAReconcilerThatDoesNotAskIsNotToldOfDepartures(t *testing.T) {
	type parts struct {
		Root  *corev1.ConfigMap `kates:",root"`
		Nodes []*corev1.Node
	}
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		got := newJournal()
		r := run(w, func(_ context.Context, p *parts) (controller.Result, error) {
			got.note(string(p.Root.UID))
			return controller.RequeueAfter(hour), nil
		})
		<-after(hour + second)
		w.remove(configs, "ns", "a")
		w.root("a", "u2", "1")
		<-after(second)
		w.remove(configs, "ns", "a")
		<-after(24 * hour)
		r.runs()
		assert.Equal(t, []string{"u1 0s", "u1 1h0m0s", "u2 1h0m1s"}, got.taken())
		r.stop()
	})
}

// unreadable returns a root whose data is no map.
func unreadable(name, uid string) *kates.Unstructured {
	u := &kates.Unstructured{Object: map[string]any{"data": "nonsense"}}
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	return u
}

func TestG8ARootHasDepartedThoughTheNextOneOfItsNameCannotBeRead(t *testing.T) {
	broken := kates.WithTransform(kates.TransformOf(func(o metav1.Object) error {
		if o.GetUID() == "u2" && o.GetAnnotations()["mended"] == "" {
			return errOops
		}
		return nil
	}))
	for name, options := range map[string][]kates.RunOption{
		"a conversion fails":           {bySecret},
		"a conversion fails, selected": {bySecret, kates.Query{Name: "Root", FieldSelector: "metadata.name=a"}},
		// like an object that does not decode from the wire
		"a transform fails": {bySecret, broken},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.root("a", "u1", "1")
				w.owns("a", "u1", "d")
				w.secret("s", "ns/a")
				failures := 2
				c := &calls{answer: func(_ context.Context, a *app) (controller.Result, error) {
					if failures--; a.Info.Departure != "" && failures >= 0 {
						return controller.Done, errOops
					}
					return controller.Done, nil
				}}
				errs := newJournal()
				r := run(w, c.reconcile, append(options, told(errs))...)
				assert.Equal(t, []string{"ns/a u1=1 +d *s"}, c.taken())
				w.put(configs, unreadable("a", "u2"))
				<-after(hour)
				r.runs()
				assert.Equal(t, []string{"ns/a u1=1 +d *s deleted", "ns/a u1=1 +d *s deleted"}, c.taken())
				assert.Zero(t, w.count("get"), "no need to ask")
				all := errs.taken()
				if assert.NotEmpty(t, all) {
					assert.Contains(t, all[0], "ns/a 1 oops")
				}
				if name != "a transform fails" { // its key is known
					require.Len(w, all, 2)
					assert.Contains(t, all[1], "ns/a 1 the root cannot be read: ")
					assert.Len(t, r.Status().Failing, 1)
				}
				assert.Equal(t, 1, r.Status().Watches.Queries[0].Invalid)

				mended := rootObject("a", "u2", "3")
				mended.Annotations = map[string]string{"mended": "yes"}
				w.put(configs, mended)
				r.runs()
				assert.Equal(t, []string{"ns/a u2=3 *s"}, c.taken())
				assert.Empty(t, r.Status().Failing)
				r.stop()
			})
		})
	}
}

func TestARootOfWhichNobodyIsToldThatItDepartedIsForgottenForTheNextOneThatCannotBeRead(t *testing.T) {
	type parts struct {
		Root *corev1.ConfigMap `kates:",root"`
	}
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		got, errs := newJournal(), newJournal()
		r := run(w, func(_ context.Context, p *parts) (controller.Result, error) {
			got.note(string(p.Root.UID))
			return controller.Done, nil
		}, told(errs))
		w.put(configs, unreadable("a", "u2"))
		<-after(hour)
		r.runs()
		assert.Equal(t, []string{"u1 0s"}, got.taken())
		assert.Len(t, errs.taken(), 1)
		w.root("a", "u2", "3")
		r.runs()
		assert.Equal(t, []string{"u2 1h0m0s"}, got.taken())
		r.stop()
	})
}

func TestG8ARootThatCannotBeReadHasNotDepartedAndIsAnErrorUntilItCan(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u", "1")
		c := &calls{}
		errs := newJournal()
		r := run(w, c.reconcile, bySecret, told(errs), kates.WithTransform(kates.TransformOf(func(o metav1.Object) error {
			if o.GetAnnotations()["broken"] != "" {
				return errOops
			}
			return nil
		})))
		c.taken()
		o := rootObject("a", "u", "2")
		o.Annotations = map[string]string{"broken": "yes"}
		w.put(configs, o)
		<-after(hour)
		r.runs()
		assert.Empty(t, c.taken())
		all := errs.taken()
		assert.Len(t, all, 1)
		assert.Contains(t, all[0], "ns/a 1 the root cannot be read: ")
		assert.Equal(t, []string{"ns/a"}, r.Keys())
		w.root("a", "u", "3")
		r.runs()
		assert.Equal(t, []string{"ns/a u=3"}, c.taken())
		r.stop()
	})
}
