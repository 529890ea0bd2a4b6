package consumer

import (
	"context"
	"errors"
	"iter"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// runtimeCache uses controller-runtime's cache.
type runtimeCache struct {
	signal
	options []client.ListOption
	cache   cache.Cache
	last    *lists
}

// lists is its snapshot: slices of structs, not of pointers.
type lists struct {
	Pods       corev1.PodList
	Services   corev1.ServiceList
	ConfigMaps corev1.ConfigMapList
}

func newRuntimeCache(shared bool) func() Consumer {
	return func() Consumer {
		c := &runtimeCache{}
		if shared {
			c.options = append(c.options, client.UnsafeDisableDeepCopy)
		}
		return c
	}
}

func (c *runtimeCache) Start(ctx context.Context, config *rest.Config) error {
	log.SetLogger(logr.Discard())
	var err error
	if c.cache, err = cache.New(config, cache.Options{}); err != nil {
		return err
	}
	go func() { _ = c.cache.Start(ctx) }() // ends with ctx; its errors show below
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &corev1.ConfigMap{}} {
		informer, err := c.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		if err := c.follow(informer); err != nil {
			return err
		}
	}
	if !c.cache.WaitForCacheSync(ctx) {
		return errors.New("the cache did not sync")
	}
	return nil
}

func (c *runtimeCache) Snapshot(ctx context.Context) (View, error) {
	l := new(lists)
	for _, list := range []client.ObjectList{&l.Pods, &l.Services, &l.ConfigMaps} {
		if err := c.cache.List(ctx, list, c.options...); err != nil {
			return View{}, err
		}
	}
	c.last = l
	return View{
		Objects: len(l.Pods.Items) + len(l.Services.Items) + len(l.ConfigMaps.Items),
		All:     chain(items(l.Pods.Items), items(l.Services.Items), items(l.ConfigMaps.Items)),
	}, nil
}

func items[T any, P interface {
	*T
	metav1.Object
}](all []T) iter.Seq[metav1.Object] {
	return func(yield func(metav1.Object) bool) {
		for i := range all {
			if !yield(P(&all[i])) {
				return
			}
		}
	}
}
