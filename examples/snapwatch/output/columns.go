package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// columns prints a table of all objects, whose columns are paths: NAME:.metadata.name.
type columns struct {
	names, paths  []string
	once, printed bool
}

var errColumns = errors.New("custom-columns format specified but no custom columns given: " +
	"custom-columns=NAME:.metadata.name,PHASE:.status.phase")

func newColumns(spec string, once bool) (*columns, error) {
	if spec == "" {
		return nil, errColumns
	}
	c := &columns{once: once}
	for column := range strings.SplitSeq(spec, ",") {
		name, path, ok := strings.Cut(column, ":")
		if !ok || name == "" || path == "" {
			return nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", column)
		}
		path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
		path = "{." + strings.TrimPrefix(path, ".") + "}"
		if err := jsonpath.New(name).Parse(path); err != nil {
			return nil, fmt.Errorf("custom-columns: the path of %s: %w", name, err)
		}
		c.names, c.paths = append(c.names, name), append(c.paths, path)
	}
	return c, nil
}

func (p *columns) Whole() bool { return true }

func (p *columns) Print(w io.Writer, s Snapshot) error {
	var b bytes.Buffer
	if p.printed {
		b.WriteByte('\n')
	}
	p.printed = true
	t := &metav1.Table{}
	for _, name := range p.names {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name})
	}
	for _, k := range s.Kinds {
		for _, o := range k.Objects {
			t.Rows = append(t.Rows, metav1.TableRow{Cells: p.cells(o.Object)})
		}
	}
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, &b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// cells are the values of an object. What is not there, or cannot be read, is <none>.
func (p *columns) cells(content map[string]any) (cells []any) {
	for i, path := range p.paths {
		const none = "<none>"
		j := jsonpath.New(p.names[i]).AllowMissingKeys(true)
		if j.Parse(path) != nil {
			cells = append(cells, none)
			continue
		}
		all, err := j.FindResults(content)
		if err != nil || len(all) == 0 || len(all[0]) == 0 {
			cells = append(cells, none)
			continue
		}
		var texts []string
		for _, v := range all[0] {
			if !v.IsValid() || !v.CanInterface() || v.Interface() == nil {
				texts = append(texts, none)
				continue
			}
			texts = append(texts, fmt.Sprint(v.Interface()))
		}
		cells = append(cells, strings.Join(texts, ","))
	}
	return cells
}
