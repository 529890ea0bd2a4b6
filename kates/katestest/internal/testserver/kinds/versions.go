package kinds

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

// shown is stored content as a version of the custom kind has it: with the defaults of the version
// that is stored, and without what either version does not have. The versions have no other
// differences: there are no conversion webhooks here.
func (c *Custom) shown(content map[string]any) map[string]any {
	if c.Stored == nil || content == nil {
		return content
	}
	content = runtime.DeepCopyJSON(content)
	c.Stored.Custom.Prune(content)
	c.Stored.Custom.Default(content)
	if c.Stored.Custom != c {
		c.Prune(content)
	}
	return content
}

// stored is content as it is stored. It changes the content.
func (c *Custom) stored(content map[string]any) map[string]any {
	if c.Stored == nil || content == nil {
		return content
	}
	if c.Stored.Custom != c {
		c.Stored.Custom.Prune(content)
		c.Stored.Custom.Default(content)
	}
	content["apiVersion"] = c.Stored.GroupVersion().String()
	return content
}

// warn gives the deprecated versions of a kind their warnings.
func (d *definition) warn(all []*Kind) {
	for i, v := range d.Spec.Versions {
		if !v.Deprecated {
			continue
		}
		k := all[i]
		if v.Warning != "" {
			k.Custom.Deprecated = v.Warning
			continue
		}
		k.Custom.Deprecated = fmt.Sprintf("%s %s is deprecated", k.GroupVersion(), k.Kind)
		if better := d.better(v.Name); better != "" {
			k.Custom.Deprecated += fmt.Sprintf("; use %s/%s %s", k.Group, better, k.Kind)
		}
	}
}

// better is the version that is recommended in place of a deprecated one: the newest that is
// served, and not deprecated itself.
func (d *definition) better(than string) string {
	var names []string
	for _, v := range d.Spec.Versions {
		if v.Served && !v.Deprecated && version.CompareKubeAwareVersionStrings(v.Name, than) > 0 {
			names = append(names, v.Name)
		}
	}
	if names == nil {
		return ""
	}
	return slices.MaxFunc(names, version.CompareKubeAwareVersionStrings)
}
