package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// dynamicInformers uses client-go's dynamic informers. It makes a snapshot by converting all
// objects, or as accumulators do that bind a kind as a whole: it encodes all objects of a changed
// kind as one JSON text, and decodes that into the field.
type dynamicInformers struct {
	signal
	reencode bool
	stores   []cache.Store // in the order of kinds
	dirty    []atomic.Bool
	last     Typed
}

func newDynamic(reencode bool) func() Consumer {
	return func() Consumer { return &dynamicInformers{reencode: reencode, dirty: make([]atomic.Bool, len(kinds))} }
}

func (c *dynamicInformers) Start(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	var synced []cache.InformerSynced
	for i, kind := range kinds {
		informer := factory.ForResource(coreVersion.WithResource(kind)).Informer()
		set := func() { c.dirty[i].Store(true); c.set() }
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { set() }, UpdateFunc: func(any, any) { set() }, DeleteFunc: func(any) { set() },
		})
		if err != nil {
			return err
		}
		c.dirty[i].Store(true)
		c.stores = append(c.stores, informer.GetStore())
		synced = append(synced, informer.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the informers did not sync")
	}
	return nil
}

func (c *dynamicInformers) Snapshot(context.Context) (View, error) {
	t := c.last
	make := []func(int) error{
		func(i int) (err error) { t.Pods, err = field(c, i, t.Pods); return err },
		func(i int) (err error) { t.Services, err = field(c, i, t.Services); return err },
		func(i int) (err error) { t.ConfigMaps, err = field(c, i, t.ConfigMaps); return err },
	}
	for i, f := range make {
		if err := f(i); err != nil {
			return View{}, fmt.Errorf("make the field of %s: %w", kinds[i], err)
		}
	}
	c.last = t
	return t.view(), nil
}

func field[T any](c *dynamicInformers, i int, last []*T) ([]*T, error) {
	if !c.reencode {
		return converted[T](c.stores[i].List())
	}
	if !c.dirty[i].Swap(false) {
		return last, nil
	}
	text, err := json.Marshal(c.stores[i].List())
	if err != nil {
		return nil, err
	}
	var all []*T
	return all, json.Unmarshal(text, &all)
}

func converted[T any](stored []any) ([]*T, error) {
	all := make([]*T, len(stored))
	for i, o := range stored {
		all[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
