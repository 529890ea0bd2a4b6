// Package judge decides whether an operator of package api has done its work. It uses its own
// watches, and compares with what the writers of each App want, not with what the operator
// reports.
package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kates-go/kates/bench/internal/operator/api"
)

// kinds are the watched kinds.
var kinds = []client.Object{&api.App{}, &corev1.ServiceAccount{}, &corev1.Service{}, &appsv1.Deployment{}, &corev1.ConfigMap{}}

// Judge watches Apps and what they own. [Start] makes it. Its methods may be called concurrently.
type Judge struct {
	mu    sync.Mutex
	roots map[types.NamespacedName]*root
	wrong map[types.NamespacedName]string // with the reason
	// right is when the last App became right. turned is closed and replaced whenever all are
	// right.
	right  time.Time
	turned chan struct{}
}

// root is one App.
type root struct {
	app     *api.App // as the server has it, nil if it does not exist
	spec    *api.AppSpec
	objects map[Key]api.Object // the objects that it controls
	// least are the versions that objects must have passed. gone are the UIDs that must no longer
	// exist.
	least map[Key]uint64
	gone  map[Key]types.UID
}

// Key names an object of an App.
type Key struct {
	Kind, Name string
}

// KeyOf returns the key of an object that an App owns.
func KeyOf(o api.Object) Key { return Key{kindOf(o), o.GetName()} }

// kindOf names a kind as Go does, such as v1.Service: objects from a cache do not carry their
// kind.
func kindOf(o api.Object) string { return strings.TrimPrefix(fmt.Sprintf("%T", o), "*") }

// Start begins to watch, and returns when all kinds are listed. The watches end with ctx.
func Start(ctx context.Context, config *rest.Config) (*Judge, error) {
	c, err := cache.New(config, cache.Options{
		Scheme: api.NewScheme(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("watch what the operators do: %w", err)
	}
	j := newJudge()
	go func() { _ = c.Start(ctx) }() // ends with ctx; its errors show below
	for _, kind := range kinds {
		informer, err := c.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watch what the operators do: %w", err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { j.see(o, true) },
			UpdateFunc: func(_, o any) { j.see(o, true) },
			DeleteFunc: func(o any) { j.see(o, false) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch what the operators do: %w", err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return nil, fmt.Errorf("watch what the operators do: %w", context.Cause(ctx))
		}
	}
	return j, nil
}

func newJudge() *Judge {
	return &Judge{
		roots: make(map[types.NamespacedName]*root), wrong: make(map[types.NamespacedName]string), turned: make(chan struct{}),
	}
}

// see handles an event.
func (j *Judge) see(event any, there bool) {
	if tombstone, ok := event.(toolscache.DeletedFinalStateUnknown); ok {
		event = tombstone.Obj
	}
	o, ok := event.(api.Object)
	if !ok {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if app, ok := o.(*api.App); ok {
		r := j.root(client.ObjectKeyFromObject(app))
		if r.app = nil; there {
			r.app = app
		}
		j.judge(client.ObjectKeyFromObject(app))
		return
	}
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.APIVersion != api.GroupVersion.String() {
		return
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}
	r := j.root(name)
	if delete(r.objects, KeyOf(o)); there {
		r.objects[KeyOf(o)] = o
	}
	j.judge(name)
}

func (j *Judge) root(name types.NamespacedName) *root {
	r := j.roots[name]
	if r == nil {
		r = &root{objects: make(map[Key]api.Object), least: make(map[Key]uint64), gone: make(map[Key]types.UID)}
		j.roots[name] = r
	}
	return r
}

// judge records whether a root is right.
func (j *Judge) judge(name types.NamespacedName) {
	why := j.roots[name].why()
	if why != "" {
		j.wrong[name] = why
		return
	}
	if _, was := j.wrong[name]; !was {
		return
	}
	delete(j.wrong, name)
	if j.right = time.Now(); len(j.wrong) == 0 {
		close(j.turned)
		j.turned = make(chan struct{})
	}
}

// why says what is wrong with a root; "" if nothing is.
func (r *root) why() string {
	switch {
	case r.spec == nil:
		return "" // nobody expects anything of it
	case r.app == nil:
		return "there is no App"
	case !equality.Semantic.DeepEqual(r.app.Spec, *r.spec):
		return "its spec is not the last one"
	}
	wanted := api.Wanted(r.app)
	listed := api.Listed[api.Object](wanted)
	for _, want := range listed {
		key := KeyOf(want)
		have := r.objects[key]
		if have == nil {
			return fmt.Sprintf("%v is not there", key)
		}
		if have.GetUID() == r.gone[key] || version(have) <= r.least[key] {
			return fmt.Sprintf("%v was not repaired", key)
		}
		if difference := fulfils(r.app, want, have); difference != "" {
			return fmt.Sprintf("%v: %s", key, difference)
		}
	}
	if len(r.objects) > len(listed) {
		return fmt.Sprintf("it has %d objects of %d", len(r.objects), len(listed))
	}
	return statusFulfils(r.app, len(listed), len(wanted.Settings))
}

func version(o metav1.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0 // not an object of a server
	}
	return n
}

// Expect announces the spec that an App will have. Call it before the write. The App is wrong
// until everything matches that spec.
func (j *Judge) Expect(name types.NamespacedName, spec api.AppSpec) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.root(name).spec = &spec
	j.judge(name)
}

// Changed announces that somebody else changed an object of an App, which now has the object's
// version. Deleted announces a deletion. The App is wrong until the operator has repaired or
// replaced the object.
func (j *Judge) Changed(app types.NamespacedName, o api.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.root(app).least[KeyOf(o)] = version(o)
	j.judge(app)
}

// Deleted: see Changed.
func (j *Judge) Deleted(app types.NamespacedName, o api.Object) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.root(app).gone[KeyOf(o)] = o.GetUID()
	j.judge(app)
}

// Await waits until all Apps are right. It returns when the last one became right, according to
// the judge's watches. After a time-out the error says what is wrong.
func (j *Judge) Await(ctx context.Context, most time.Duration) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		j.mu.Lock()
		left, right, turned := len(j.wrong), j.right, j.turned
		j.mu.Unlock()
		if left == 0 {
			return right, nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return time.Time{}, errors.Join(context.Cause(ctx), j.complaint())
		}
	}
}

// complaint says how many Apps are wrong, and what is wrong with the first one.
func (j *Judge) complaint() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []string
	for name, why := range j.wrong {
		all = append(all, fmt.Sprintf("%s: %s", name, why))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%d Apps are not as they should be, for one %s", len(all), all[0])
}

// Owned returns the objects of an App in order of their keys. They are shared: do not change
// them.
func (j *Judge) Owned(app types.NamespacedName) []api.Object {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.roots[app]
	if r == nil {
		return nil
	}
	var all []api.Object
	for _, o := range r.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b api.Object) int {
		x, y := KeyOf(a), KeyOf(b)
		return strings.Compare(x.Kind+"/"+x.Name, y.Kind+"/"+y.Name)
	})
	return all
}
