package consumer

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informing uses client-go's typed informers, over protobuf. Its snapshot is what the listers
// list.
type informing struct {
	signal
	transform  cache.TransformFunc
	pods       listers.PodLister
	services   listers.ServiceLister
	configMaps listers.ConfigMapLister
	last       *Typed
}

func newInformers(transform cache.TransformFunc) func() Consumer {
	return func() Consumer { return &informing{transform: transform} }
}

func dropManagedFields(o any) (any, error) {
	if a, err := meta.Accessor(o); err == nil {
		a.SetManagedFields(nil)
	}
	return o, nil
}

// protobuf returns the configuration for a client of built-in kinds.
func protobuf(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return c
}

func (c *informing) Start(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	var options []informers.SharedInformerOption
	if c.transform != nil {
		options = append(options, informers.WithTransform(c.transform))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	core := factory.Core().V1()
	c.pods, c.services, c.configMaps = core.Pods().Lister(), core.Services().Lister(), core.ConfigMaps().Lister()
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{core.Pods().Informer(), core.Services().Informer(), core.ConfigMaps().Informer()} {
		if err := c.follow(informer); err != nil {
			return err
		}
		synced = append(synced, informer.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the informers did not sync")
	}
	return nil
}

// follow sets the signal at every change of an informer.
func (s *signal) follow(informer interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.set() },
		UpdateFunc: func(any, any) { s.set() },
		DeleteFunc: func(any) { s.set() },
	})
	return err
}

func (c *informing) Snapshot(context.Context) (View, error) {
	var t Typed
	var err error
	if t.Pods, err = c.pods.List(labels.Everything()); err != nil {
		return View{}, err
	}
	if t.Services, err = c.services.List(labels.Everything()); err != nil {
		return View{}, err
	}
	if t.ConfigMaps, err = c.configMaps.List(labels.Everything()); err != nil {
		return View{}, err
	}
	c.last = &t
	return t.view(), nil
}

// kinds are the resources of the core group that every consumer watches.
var kinds = []string{"pods", "services", "configmaps"}

var coreVersion = corev1.SchemeGroupVersion
