// Gives the token of a test to each request of a program that has no option for one.
import { createRequire } from "node:module";

const { getGlobalDispatcher, setGlobalDispatcher } = createRequire(process.argv[1])("undici");
const authorize = (dispatch) => (options, handler) => {
  const [name, value] = ["authorization", `Bearer ${process.env.MCP_TOKEN}`];
  const given = options.headers ?? {};
  const headers = Array.isArray(given) ? [...given, name, value] : { ...given, [name]: value };
  return dispatch({ ...options, headers }, handler);
};
setGlobalDispatcher(getGlobalDispatcher().compose(authorize));
