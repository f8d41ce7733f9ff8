package openai

import (
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// plain undoes the compression of an answer. None is asked for, because a
// compressed stream comes in lumps; some proxies compress all the same.
func plain(resp *http.Response) (io.Reader, error) {
	var r io.Reader = resp.Body
	codings := strings.Split(strings.Join(resp.Header.Values("Content-Encoding"), ","), ",")
	for i := len(codings) - 1; i >= 0; i-- { // the last one was applied last
		var err error
		switch c := strings.ToLower(strings.TrimSpace(codings[i])); c {
		case "", "identity":
		case "gzip", "x-gzip":
			r, err = gzip.NewReader(r)
		case "deflate":
			r, err = zlib.NewReader(r)
		default:
			return nil, &errNotStream{fmt.Sprintf("it is compressed with %s, which was not asked for", clip(c, 20))}
		}
		if err != nil {
			return nil, fmt.Errorf("the compressed answer cannot be read: %w", err)
		}
	}
	return r, nil
}
