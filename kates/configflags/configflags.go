// Package configflags makes clients from kubectl's connection flags as cli-runtime has them, for
// kubectl plugins and for programs that have a *genericclioptions.ConfigFlags already. It is a
// module of its own, because cli-runtime is heavy. A program with few flags (--kubeconfig,
// --context, --namespace) binds them to the fields of a [kates.ClientConfig] and does without it.
//
// [NewClientFromConfigFlags] is the function to start from.
package configflags

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"

	"github.com/kates-go/kates/kates"
)

// For Emissary's code: ConfigFlags is cli-runtime's. Its AddFlags adds kubectl's connection flags
// to a flag set. New code uses [genericclioptions.ConfigFlags].
type ConfigFlags = genericclioptions.ConfigFlags

// For Emissary's code: NewConfigFlags returns flags with kubectl's defaults. With
// usePersistentConfig, the kubeconfig is read once for all that is made from the flags. New code
// uses [genericclioptions.NewConfigFlags].
func NewConfigFlags(usePersistentConfig bool) *ConfigFlags {
	return genericclioptions.NewConfigFlags(usePersistentConfig)
}

var errNil = errors.New("the flags are nil")

// NewClientFromConfigFlags returns a client for the cluster that the flags name, as they are now:
// parse them first. The options come after the flags, so they win. It sends no request. The client
// keeps discovery in memory, and does not use the flags' cache directory.
func NewClientFromConfigFlags(config *ConfigFlags, opts ...kates.Option) (*kates.Client, error) {
	if config == nil {
		return nil, fmt.Errorf("make a client: %w", errNil)
	}
	cfg, err := config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("make a client from flags: %w", err)
	}
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("make a client from flags: %w", err)
	}
	all := append([]kates.Option{kates.WithNamespace(namespace)}, opts...)
	return kates.NewClientFromRESTConfig(cfg, all...)
}

// For Emissary's code: NewRESTMapper returns cli-runtime's mapper and discovery for the flags,
// which use the flags' cache directory. New code uses the mapper of its client,
// [kates.Client.RESTMapper].
func NewRESTMapper(
	config *ConfigFlags,
) (meta.RESTMapper, discovery.CachedDiscoveryInterface, error) {
	if config == nil {
		return nil, nil, fmt.Errorf("make a mapper: %w", errNil)
	}
	disco, err := config.ToDiscoveryClient()
	if err != nil {
		return nil, nil, fmt.Errorf("make a mapper from flags: %w", err)
	}
	mapper, err := config.ToRESTMapper()
	if err != nil {
		return nil, nil, fmt.Errorf("make a mapper from flags: %w", err)
	}
	return mapper, disco, nil
}
