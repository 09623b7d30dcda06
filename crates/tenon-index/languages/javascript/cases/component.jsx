export default function App({ items }) {
  return <ul>{items.map((item) => <Item key={item} />)}</ul>;
}

export const Item = React.memo(function Item({ children }) {
  return <li>{children}</li>;
});
