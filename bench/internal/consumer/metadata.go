package consumer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informingMetadata uses client-go's informers of metadata, over protobuf.
type informingMetadata struct {
	signal
	listers []cache.GenericLister
}

func newMetadataInformers() Consumer { return &informingMetadata{} }

func (c *informingMetadata) Start(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	var synced []cache.InformerSynced
	for _, kind := range kinds {
		informer := factory.ForResource(coreVersion.WithResource(kind))
		if err := c.follow(informer.Informer()); err != nil {
			return err
		}
		c.listers, synced = append(c.listers, informer.Lister()), append(synced, informer.Informer().HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the informers did not sync")
	}
	return nil
}

func (c *informingMetadata) Snapshot(context.Context) (View, error) {
	var all []*metav1.PartialObjectMetadata
	for _, lister := range c.listers {
		found, err := lister.List(labels.Everything())
		if err != nil {
			return View{}, err
		}
		for _, o := range found {
			m, ok := o.(*metav1.PartialObjectMetadata)
			if !ok {
				return View{}, fmt.Errorf("a %T, and no metadata", o)
			}
			all = append(all, m)
		}
	}
	return View{Objects: len(all), All: objects(all)}, nil
}
