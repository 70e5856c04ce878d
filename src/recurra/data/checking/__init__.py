"""Parts of `recurra check`: each looks at the rows as they stream by and says at its end what it saw."""
