package rules

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/controller"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// namespaceGoes has a namespace deleted, with its roles, while the watch is cut.
func namespaceGoes(ctx context.Context, w *world, c *kates.Client) error {
	w.has("x")
	snapshots, err := kates.Watch[inNamespace](ctx, c, kates.Query{Name: "Maps", Namespace: w.ns})
	if err != nil {
		return err
	}
	defer snapshots.Close()
	began, end := context.WithCancel(ctx)
	defer end()
	go func() { // ends with began: a refused watch never shows anything
		if w.faults.Wait(began, func() bool { return len(w.refused()) > 0 }) == nil {
			end()
		}
	}()
	var snap inNamespace
	for s := range snapshots.All(began) {
		snap = *s
		break
	}
	if len(snap.Maps) == 0 {
		return errors.New("nothing was shown")
	}
	if began.Err() != nil { // a list was refused, and a watch was not
		return began.Err()
	}
	end()
	if err := c.Sync(ctx); err != nil {
		return err
	}
	reads := w.faults.On(katestest.Match{Resource: "configmaps"}).Hold()
	w.faults.Now(katestest.Match{Resource: "configmaps"}).Cut(0)
	if err := deleteNamespace(ctx, w.ns); err != nil {
		return err
	}
	reads.Stop()
	gets := katestest.Match{Verb: "get", Resource: "namespaces", Where: answered}
	if err := w.faults.Wait(ctx, func() bool { return len(w.faults.Requests(gets)) > 0 }); err != nil {
		return err
	}
	if w.faults.Requests(gets)[0].Status == 403 {
		return errors.New("nobody can tell")
	}
	for s, err := range snapshots.All(ctx) {
		if err != nil || len(s.Maps) == 0 {
			return err
		}
	}
	return ctx.Err()
}

// deleteNamespace does what the namespace controller does, as far as the test has something there.
func deleteNamespace(ctx context.Context, ns string) error {
	everything := metav1.DeleteOptions{}
	err := admin.CoreV1().Namespaces().Delete(ctx, ns, everything)
	for _, deleted := range []error{
		admin.RbacV1().RoleBindings(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}),
		admin.RbacV1().Roles(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}),
		admin.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, everything, metav1.ListOptions{}),
	} {
		err = errors.Join(err, deleted)
	}
	gone, failed := admin.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	gone.Spec.Finalizers = nil
	_, err = admin.CoreV1().Namespaces().Finalize(ctx, gone, metav1.UpdateOptions{})
	return err
}

// led is what a leader writes: one secret, which it does not watch.
func leadNeeds(w *world) []kates.Need {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "s"}}
	return []kates.Need{
		kates.Watches[struct{ Services []*corev1.Service }](election(w)), kates.Uses(secret, kates.CanPatch),
	}
}

func leads(ctx context.Context, w *world, c *kates.Client) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "s"}}
	if _, err := admin.CoreV1().Secrets(w.ns).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	patched := false
	err := kates.Run(ctx, c, func(ctx context.Context, _ *struct{ Services []*corev1.Service }) error {
		err := c.Patch(ctx, secret, kates.MergePatchType, []byte(`{"data":{"a":"Yg=="}}`), nil)
		if err == nil {
			patched = true
			end()
		}
		return err
	}, election(w))
	if err == nil && !patched {
		return errors.New("it has written nothing")
	}
	return err
}

func group(w *world) kates.Sharding {
	return kates.Sharding{Namespace: w.ns, Name: "group", RetryPeriod: 100 * time.Millisecond}
}

func shardNeeds(w *world) []kates.Need {
	return []kates.Need{kates.Watches[inNamespace](kates.Query{Name: "Maps", LabelSelector: "of=" + w.ns}, group(w))}
}

// shards joins, and leaves. The answer to one renewal is lost, so the Lease is read.
func shards(ctx context.Context, w *world, c *kates.Client) error {
	w.has("x")
	renewals := katestest.Match{Verb: "update", Resource: "leases.coordination.k8s.io"}
	w.faults.On(renewals).Times(1).Lose()
	run, end := context.WithCancel(ctx)
	defer end()
	called := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() { // ends with ctx
		done <- kates.RunEach(run, c, func(context.Context, string, *inNamespace) error {
			select {
			case called <- struct{}{}:
			default:
			}
			return nil
		}, kates.Query{Name: "Maps", LabelSelector: "of=" + w.ns, Key: kates.ByName}, group(w))
	}()
	select {
	case <-called:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), <-done)
	}
	read := katestest.Match{Verb: "get", Resource: "leases.coordination.k8s.io", Where: answered}
	err := w.faults.Wait(ctx, func() bool { return len(w.faults.Requests(read)) > 0 })
	err = errors.Join(err, c.Sync(ctx))
	end()
	return errors.Join(err, <-done)
}

func rootNeeds(w *world) []kates.Need {
	return []kates.Need{kates.Watches[root](kates.Query{Name: "Root", LabelSelector: "of=" + w.ns})}
}

// reconciles has a root leave the controller's query.
func reconciles(ctx context.Context, w *world, c *kates.Client) error {
	w.has("x")
	run, end := context.WithCancel(ctx)
	defer end()
	var left controller.Departure
	one, err := controller.New(c, "roots", func(ctx context.Context, p *root) (controller.Result, error) {
		if p.Info.Departure != "" {
			left = p.Info.Departure
			end()
			return controller.Done, nil
		}
		relabel := []byte(`{"metadata":{"labels":{"of":"nobody"}}}`)
		_, err := admin.CoreV1().ConfigMaps(w.ns).Patch(ctx, "x", types.MergePatchType, relabel, metav1.PatchOptions{})
		return controller.Done, errors.Join(err, c.Sync(ctx))
	}, kates.Query{Name: "Root", LabelSelector: "of=" + w.ns})
	if err != nil {
		return err
	}
	if err := one.Run(run); err != nil || left != controller.Left {
		return fmt.Errorf("the root has left as %q: %w", left, errors.Join(err, ctx.Err()))
	}
	return nil
}

type fleetView struct {
	Maps map[string][]*corev1.ConfigMap
}

// member is a cluster of a fleet that watches it.
func member(ctx context.Context, w *world, c *kates.Client) error {
	w.has("x")
	all, err := fleet.New(fleet.Options{Deadline: patience})
	if err != nil {
		return err
	}
	defer all.Close()
	if err := all.Set(fleet.Member{Name: "one", Client: c}); err != nil {
		return err
	}
	snapshots, err := fleet.Watch[fleetView](ctx, all, kates.Query{Name: "Maps", LabelSelector: "of=" + w.ns})
	if err != nil {
		return err
	}
	defer snapshots.Close()
	for snap, err := range snapshots.All(ctx) {
		if err != nil {
			return err
		}
		if len(snap.Maps["one"]) == 1 {
			return c.Sync(ctx)
		}
	}
	return fmt.Errorf("nothing was shown: %w", ctx.Err())
}

func secretsOf(c *kates.Client, w *world) fleet.Source {
	return source.Secrets(c, source.SecretOptions{LabelSelector: "of=" + w.ns})
}

// home is the cluster that has the Secrets of a fleet's members.
func home(ctx context.Context, w *world, c *kates.Client) error {
	run, end := context.WithCancel(ctx)
	defer end()
	var synced error
	err := secretsOf(c, w).Run(run, func([]fleet.Member) {
		synced = c.Sync(ctx)
		end()
	})
	if ctx.Err() != nil || synced != nil {
		return errors.Join(err, synced, ctx.Err())
	}
	return nil
}
